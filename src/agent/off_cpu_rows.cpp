// SPDX-License-Identifier: Apache-2.0
#include "agent/off_cpu_rows.h"

#include "sources/ebpf/off_cpu.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <string_view>

namespace gpusonde::agent {
namespace {

using model::ThreadState;

// Begins without an end accumulate while all of a thread's off-CPU times are below their thresholds.
constexpr size_t kMaxBegins = 64;

bool IsCudaDriver(const AddressSpace::Mapping* mapping) {
  return mapping != nullptr && mapping->binary != nullptr && mapping->binary->name.starts_with("libcuda.so");
}

// The C library starts every thread, so its frames don't say whose thread it is.
bool IsCLibrary(const AddressSpace::Mapping* mapping) {
  if (mapping == nullptr || mapping->binary == nullptr) return false;
  const std::string_view name = mapping->binary->name;
  return name.starts_with("libc.so") || name.starts_with("libc-2") || name.starts_with("libpthread") ||
         name.starts_with("ld-linux");
}

// Whether a thread in futex(2) waits for a lock that another thread holds, and not for another thread to
// notify a condition, post a semaphore or end. Locks of glibc, Rust's standard library and Go wait with the
// value 2, glibc's read-write locks with 2 or 3; musl's have the top bit set. Other values are counters and
// ids of joined threads.
bool WaitsForLock(const gpusonde_off_cpu_head& begin) {
  switch (begin.futex_op & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
      return true;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      return begin.futex_value == 2 || begin.futex_value == 3 || (begin.futex_value >> 31) != 0;
    default:
      return false;
  }
}

}  // namespace

ThreadState WaitOf(const gpusonde_off_cpu_head& begin) {
  if (begin.runnable != 0) return ThreadState::kRunQueue;
  if (begin.in_io != 0) return ThreadState::kIo;
  switch (begin.syscall) {
    case SYS_futex:
      return WaitsForLock(begin) ? ThreadState::kLock : ThreadState::kCondition;
    case SYS_futex_waitv:
    case SYS_semop:
    case SYS_semtimedop:
      return ThreadState::kCondition;
    case SYS_flock:
      return ThreadState::kLock;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_restart_syscall:
      return ThreadState::kSleep;
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_io_uring_enter:
    case SYS_io_getevents:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_msync:
    case SYS_ioctl:
      return ThreadState::kIo;
    default:
      // Uninterruptible but not in I/O: a kernel lock, such as that of the process's memory map.
      return begin.uninterruptible != 0 ? ThreadState::kLock : ThreadState::kSleep;
  }
}

bool IsInCudaCall(const Process& process, std::span<const uint64_t> user_frames) {
  bool in_driver = false;
  const AddressSpace::Mapping* outermost = nullptr;
  for (const uint64_t address : user_frames) {
    const AddressSpace::Mapping* mapping = process.mappings.Find(address);
    in_driver |= IsCudaDriver(mapping);
    if (mapping != nullptr && !IsCLibrary(mapping)) outermost = mapping;
  }
  return in_driver && !IsCudaDriver(outermost);
}

void OffCpuRows::Begin(const gpusonde_off_cpu_head& head, const Id128& process, const Id128& stack,
                       bool in_cuda_call) {
  ThreadState state = WaitOf(head);
  if (in_cuda_call && state != ThreadState::kRunQueue) state = ThreadState::kGpuWait;
  std::vector<Absence>& begins = absences_[static_cast<int32_t>(head.tid)];
  if (begins.size() >= kMaxBegins) begins.erase(begins.begin(), begins.end() - 1);
  begins.push_back({head, process, stack, state});
}

void OffCpuRows::End(const ebpf::OffCpuEnd& end) {
  const auto thread = absences_.find(static_cast<int32_t>(end.tid));
  if (thread == absences_.end()) return;
  std::vector<Absence>& begins = thread->second;
  const auto begin =
      std::ranges::find(begins, end.begin_ns, [](const Absence& absence) { return absence.head.time_ns; });
  if (begin == begins.end()) return;
  const auto begin_ns = static_cast<int64_t>(end.begin_ns);
  const int64_t woken_ns =
      std::clamp(static_cast<int64_t>(end.woken_ns), begin_ns, static_cast<int64_t>(end.end_ns));
  if (begin->state != ThreadState::kRunQueue) Write(*begin, begin->state, begin_ns, woken_ns);
  Write(*begin, ThreadState::kRunQueue, woken_ns, static_cast<int64_t>(end.end_ns));
  begins.erase(begins.begin(), begin + 1);
}

void OffCpuRows::Rewrite(const Id128& unknown_stack,
                         const std::function<void(int32_t pid, const Id128& process)>& visit) {
  for (auto& [tid, begins] : absences_)
    for (Absence& absence : begins) {
      absence.stack = unknown_stack;
      visit(static_cast<int32_t>(absence.head.pid), absence.process);
    }
}

void OffCpuRows::ForgetEnded(const std::function<bool(int32_t pid, int32_t tid)>& runs) {
  // Without a begin it isn't known whose thread it was; the next one makes a new entry.
  std::erase_if(absences_, [&](const auto& thread) {
    const auto& [tid, begins] = thread;
    return begins.empty() || !runs(static_cast<int32_t>(begins.back().head.pid), tid);
  });
}

void OffCpuRows::Write(const Absence& absence, ThreadState state, int64_t from_ns, int64_t to_ns) {
  from_ns = std::max(from_ns, start_ns_);
  to_ns = std::min(to_ns, end_ns_);
  const int64_t weight_ns = ebpf::OffCpuWeight(to_ns - from_ns, absence.head);
  if (to_ns <= from_ns || weight_ns == 0) return;
  rows_.samples.Append({.time_ns = to_ns + epoch_offset_ns_,
                        .process = absence.process,
                        .tid = static_cast<int32_t>(absence.head.tid),
                        .cpu = static_cast<int32_t>(absence.head.cpu),
                        .stack = absence.stack,
                        .state = state,
                        .weight_ns = weight_ns,
                        .duration_ns = to_ns - from_ns});
}

}  // namespace gpusonde::agent
