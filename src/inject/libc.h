// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>

#include <cstddef>
#include <cstdint>

// What the library uses of the C library and the kernel. Nothing is newer than glibc 2.17
// (tests/inject/symbols_test.cpp checks it), and nothing allocates from the host's heap.
namespace gpusonde::inject {

// Restores errno, which is the host's, at the end of a scope. Whatever makes a system call on threads of the
// host has one.
class KeptErrno {
 public:
  KeptErrno() : value_(errno) {}
  ~KeptErrno() { errno = value_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int value_;
};

// CLOCK_MONOTONIC of the host, whatever the process's time namespace. Also registered as CUPTI's timestamp
// callback.
uint64_t NowNs();

// CLOCK_REALTIME, which CUPTI uses unless a callback is registered; one can't be removed, only replaced.
uint64_t RealTimeNs();

// CPU time of the calling thread.
uint64_t ThreadCpuNs();

uint32_t ThreadId();

// Zeroed pages from mmap, committed when first touched; null on failure.
void* Pages(size_t bytes);

// Copies a zero-terminated text of this process without faulting, as its memory may have been freed or
// unmapped: at most `room` bytes, without the terminator. False when it can't be read. `cut`: the text is
// longer.
bool ReadText(const char* text, char* copy, size_t room, size_t& length, bool& cut);

// Sleeps until `word` is no longer `value`, Wake is called on it, or the timeout expires.
void WaitWhile(uint32_t* word, uint32_t value, int64_t timeout_ns);
void Wake(uint32_t* word);

// Starts a detached thread of this name with all signals blocked, so that none of the host's handlers runs on
// it.
bool StartThread(void* (*body)(void*), const char* name);

// dlopen with RTLD_LAZY | RTLD_LOCAL (and RTLD_NOLOAD) and dlsym; null on failure, or when the process has no
// dlopen or dlsym.
void* OpenLibrary(const char* path, bool only_if_loaded);
void* FindSymbol(void* library, const char* name);

// The part of a path after its last slash.
const char* FileName(const char* path);

// Calls `visit` for the path of every shared object of this process, until it returns false.
void VisitLibraries(bool (*visit)(const char* path, void* context), void* context);

// How many libraries this process has ever loaded.
uint64_t LibrariesLoaded();

// 64 random bits from the kernel, never 0; derived from the clock if getrandom fails.
uint64_t RandomBits();

// A futex mutex. A fork may leave it locked in the child, which never takes one (see control.h).
class Mutex {
 public:
  void Lock();
  // False if it is still taken at the deadline (NowNs()).
  bool LockUntil(uint64_t deadline_ns);
  void Unlock();

 private:
  uint32_t word_ = 0;  // 0 free, 1 taken, 2 taken and waited for
};

class Locked {
 public:
  explicit Locked(Mutex& mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~Locked() { mutex_.Unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Mutex& mutex_;
};

// Tries until a deadline (NowNs()): for the host's threads, which must never hang because of us.
class LockedUntil {
 public:
  LockedUntil(Mutex& mutex, uint64_t deadline_ns) : mutex_(mutex), locked_(mutex.LockUntil(deadline_ns)) {}
  ~LockedUntil() {
    if (locked_) mutex_.Unlock();
  }
  LockedUntil(const LockedUntil&) = delete;
  LockedUntil& operator=(const LockedUntil&) = delete;

  explicit operator bool() const { return locked_; }

 private:
  Mutex& mutex_;
  bool locked_;
};

}  // namespace gpusonde::inject
