// SPDX-License-Identifier: Apache-2.0
#include "inject/libc.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// glibc 2.34 moved these into libc.so.6 under a new symbol version. The old version still exists, and is the
// one that glibc 2.17 has in libpthread and libdl, which every CUDA program loads. The symbols are weak, so
// that without them the library still loads and stays asleep.
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
#pragma weak dlopen
#pragma weak dlsym
#pragma weak pthread_create

namespace gpusonde::inject {

namespace {

uint64_t ReadClock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// By how much CLOCK_MONOTONIC of this process's time namespace (time_namespaces(7)) is ahead of the host's.
int64_t g_ahead_ns = 0;

bool IsSameLink(const char* one, const char* other) {
  char links[2][64] = {};
  return readlink(one, links[0], sizeof links[0] - 1) > 0 &&
         readlink(other, links[1], sizeof links[1] - 1) > 0 && strcmp(links[0], links[1]) == 0;
}

int64_t ParseNumber(const char*& at) {
  while (*at == ' ') ++at;
  const bool negative = *at == '-';
  if (negative) ++at;
  int64_t number = 0;
  for (; *at >= '0' && *at <= '9'; ++at) number = number * 10 + (*at - '0');
  return negative ? -number : number;
}

// Before anything reads the clock. Without /proc, or before Linux 5.6, there is nothing to read.
__attribute__((constructor)) void ReadTimeNamespace() {
  const KeptErrno kept;
  // After unshare(), the offsets are those of the children to come.
  if (!IsSameLink("/proc/self/ns/time", "/proc/self/ns/time_for_children")) return;
  const int file = open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[256] = {};  // "monotonic   SECONDS  NANOSECONDS", and a line for boottime
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  constexpr char kClock[] = "monotonic";
  const char* at = length > 0 ? strstr(text, kClock) : nullptr;
  if (at == nullptr) return;
  at += sizeof kClock - 1;
  const int64_t seconds = ParseNumber(at);
  g_ahead_ns = seconds * 1'000'000'000 + ParseNumber(at);
}

}  // namespace

uint64_t NowNs() { return ReadClock(CLOCK_MONOTONIC) - static_cast<uint64_t>(g_ahead_ns); }
uint64_t RealTimeNs() { return ReadClock(CLOCK_REALTIME); }
uint64_t ThreadCpuNs() { return ReadClock(CLOCK_THREAD_CPUTIME_ID); }

uint32_t ThreadId() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

void* Pages(size_t bytes) {
  const KeptErrno kept;
  void* pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void WaitWhile(uint32_t* word, uint32_t value, int64_t timeout_ns) {
  const KeptErrno kept;
  const timespec timeout{.tv_sec = timeout_ns / 1'000'000'000, .tv_nsec = timeout_ns % 1'000'000'000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, nullptr, 0);
}

void Wake(uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

namespace {

struct ThreadStart {
  void* (*body)(void*);
  const char* name;
};
ThreadStart g_start;  // one thread is started in the life of a process

void* Begin(void*) {
  prctl(PR_SET_NAME, g_start.name);
  return g_start.body(nullptr);
}

}  // namespace

bool StartThread(void* (*body)(void*), const char* name) {
  if (pthread_create == nullptr) return false;
  g_start = {body, name};
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  constexpr size_t kKernelSetBytes = 8;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, kKernelSetBytes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const bool started = pthread_create(&thread, &attributes, Begin, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, kKernelSetBytes);
  return started;
}

void* OpenLibrary(const char* path, bool only_if_loaded) {
  if (dlopen == nullptr) return nullptr;
  return dlopen(path, RTLD_LAZY | RTLD_LOCAL | (only_if_loaded ? RTLD_NOLOAD : 0));
}

void* FindSymbol(void* library, const char* name) {
  return dlsym == nullptr ? nullptr : dlsym(library, name);
}

const char* FileName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

namespace {
struct Visit {
  bool (*visit)(const char*, void*);
  void* context;
};
}  // namespace

void VisitLibraries(bool (*visit)(const char* path, void* context), void* context) {
  Visit call{visit, context};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        const auto* inner = static_cast<Visit*>(argument);
        return info->dlpi_name != nullptr && !inner->visit(info->dlpi_name, inner->context) ? 1 : 0;
      },
      &call);
}

uint64_t LibrariesLoaded() {
  uint64_t loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        *static_cast<uint64_t*>(argument) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  return loaded;
}

uint64_t RandomBits() {
  const KeptErrno kept;
  uint64_t bits = 0;
  constexpr unsigned kNonBlocking = 1;  // GRND_NONBLOCK
  if (syscall(SYS_getrandom, &bits, sizeof bits, kNonBlocking) == sizeof bits && bits != 0) return bits;
  return (NowNs() ^ reinterpret_cast<uintptr_t>(&bits)) * 0x9e3779b97f4a7c15 | 1;
}

// Ulrich Drepper, "Futexes are tricky", mutex 2.
void Mutex::Lock() {
  uint32_t seen = 0;
  if (__atomic_compare_exchange_n(&word_, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
  const KeptErrno kept;
  while (__atomic_exchange_n(&word_, 2, __ATOMIC_ACQUIRE) != 0)
    syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
}

bool Mutex::LockUntil(uint64_t deadline_ns) {
  uint32_t seen = 0;
  if (__atomic_compare_exchange_n(&word_, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
  while (__atomic_exchange_n(&word_, 2, __ATOMIC_ACQUIRE) != 0) {
    const uint64_t now = NowNs();
    if (now >= deadline_ns) return false;
    WaitWhile(&word_, 2, static_cast<int64_t>(deadline_ns - now));
  }
  return true;
}

void Mutex::Unlock() {
  if (__atomic_exchange_n(&word_, 0, __ATOMIC_RELEASE) == 2) Wake(&word_);
}

}  // namespace gpusonde::inject
