// SPDX-License-Identifier: Apache-2.0
#include "simgpu/machine/machine.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "simgpu/machine/models.h"
#include "simgpu/machine/settings.h"

namespace simgpu {
namespace {

char open_error[256] = "";

Machine* Fail(const char* what, const std::string& path) {
  std::snprintf(open_error, sizeof open_error, "can't %s %s: %s", what, path.c_str(), std::strerror(errno));
  return nullptr;
}

uint64_t StartTicks(int32_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t size = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  // The name in parentheses may contain any character; the start is the 20th field after it (proc(5)).
  const char* at = std::strrchr(text, ')');
  unsigned long long ticks = 0;
  if (at == nullptr ||
      std::sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &ticks) != 1)
    return 0;
  return ticks;
}

}  // namespace

const char* Machine::error() { return open_error; }

std::string Machine::Path() {
  char own_name[32];
  std::snprintf(own_name, sizeof own_name, "simgpu-%u", ::getuid());
  std::string name = TextSetting("SIMGPU_MACHINE", own_name);
  std::replace(name.begin(), name.end(), '/', '_');
  char layout[32];
  // Another layout has another file name, so that no process reads the file of another version.
  std::snprintf(layout, sizeof layout, ".%zx", sizeof(Shared));
  return "/dev/shm/" + name + layout;
}

Machine* Machine::Get() {
  static Machine* machine = Open();
  return machine;
}

void Machine::Create(Shared& shared) {
  shared.device_count = static_cast<uint32_t>(IntegerSetting("SIMGPU_DEVICES", 1, 1, kMaxDevices));
  shared.xid_sequence = 0;
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  for (uint32_t i = 0; i < shared.device_count; ++i) {
    ::pthread_mutex_init(&shared.slots[i].mutex, &attributes);
    shared.slots[i].device.Create(ModelNamed(TextSetting("SIMGPU_MODEL", "h100"), i), NowNs());
  }
  ::pthread_mutexattr_destroy(&attributes);
}

Machine* Machine::Open() {
  constexpr uint64_t kMagic = 0x31'75'70'67'6d'69'73ULL;  // "simgpu1"
  const std::string path = Path();
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return Fail("open", path);
  // The lock serialises the first clients; the kernel releases it when they end.
  if (::flock(fd, LOCK_EX) != 0 || ::ftruncate(fd, sizeof(Shared)) != 0) {
    ::close(fd);
    return Fail("make", path);
  }
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    ::close(fd);
    return Fail("map", path);
  }
  auto* shared = static_cast<Shared*>(memory);
  if (shared->magic != kMagic || shared->device_count > kMaxDevices) {
    Create(*shared);
    shared->magic = kMagic;
  }
  ::flock(fd, LOCK_UN);
  ::close(fd);
  return new Machine(shared);
}

Machine::Locked::Locked(Machine& machine, uint32_t ordinal)
    : mutex_(machine.shared_->slots[ordinal].mutex), device_(machine.shared_->slots[ordinal].device) {
  if (::pthread_mutex_lock(&mutex_) == EOWNERDEAD) {
    device_.Repair(NowNs());
    ::pthread_mutex_consistent(&mutex_);
  }
}

Machine::Locked::~Locked() { ::pthread_mutex_unlock(&mutex_); }

std::optional<uint32_t> Machine::AttachSelf(uint32_t ordinal) {
  const int32_t pid = ::getpid();
  const uint64_t start_ticks = StartTicks(pid);
  Locked device(*this, ordinal);
  ForgetTheDead(*device, NowNs());
  return device->Attach(pid, start_ticks);
}

void ForgetTheDead(Device& device, int64_t now_ns) {
  for (uint32_t slot = 0; slot < Device::kProcesses; ++slot) {
    const Process& process = device.process(slot);
    if (process.pid != 0 && StartTicks(process.pid) != process.start_ticks) device.Detach(slot, now_ns);
  }
}

uint32_t Machine::xid_sequence() const { return __atomic_load_n(&shared_->xid_sequence, __ATOMIC_ACQUIRE); }

void Machine::RaiseXid(uint32_t ordinal, int64_t code) {
  {
    Locked device(*this, ordinal);
    device->RaiseXid(code, NowNs());
  }
  __atomic_add_fetch(&shared_->xid_sequence, 1, __ATOMIC_RELEASE);
  ::syscall(SYS_futex, &shared_->xid_sequence, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

bool Machine::WaitForXid(uint32_t seen, int64_t timeout_ns) {
  const int64_t until_ns = NowNs() + timeout_ns;
  while (xid_sequence() == seen) {
    const int64_t left_ns = until_ns - NowNs();
    if (left_ns <= 0) return false;
    const timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    ::syscall(SYS_futex, &shared_->xid_sequence, FUTEX_WAIT, seen, &left, nullptr, 0);
  }
  return true;
}

}  // namespace simgpu
