// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "agent/process_table.h"
#include "agent/rows.h"
#include "base/id128.h"
#include "model/enums.h"
#include "sources/ebpf/event.h"

namespace gpusonde::agent {

// Classifies an off-CPU wait by its system call and the task state that the kernel reports. A lock is a wait
// on shared memory (futexes, semaphores, kernel locks); I/O is files, pipes and sockets, and polling them;
// all else is sleep.
model::ThreadState WaitOf(const gpusonde_off_cpu_head& begin);

// Whether a thread with this stack, leaf first, waits for a GPU: it is in one of the program's own calls into
// the CUDA driver. Threads that the driver created for itself don't count.
bool IsInCudaCall(const Process& process, std::span<const uint64_t> user_frames);

// Joins the begin and the end of a thread's off-CPU time and writes it as one or two samples: the time it
// waited for something, and its run-queue delay. Not thread-safe.
class OffCpuRows {
 public:
  OffCpuRows(int64_t epoch_offset_ns, Rows& rows) : epoch_offset_ns_(epoch_offset_ns), rows_(rows) {}

  // Only time between these counts, CLOCK_MONOTONIC.
  void set_limits(int64_t start_ns, int64_t end_ns) {
    start_ns_ = start_ns;
    end_ns_ = end_ns;
  }

  // Call in the order in which the stacks were captured.
  void Begin(const gpusonde_off_cpu_head& head, const Id128& process, const Id128& stack, bool in_cuda_call);
  // Call after all begins of the same time.
  void End(const ebpf::OffCpuEnd& end);

  // The rows that stacks' ids refer to were lost, or are in another file: waits under way end with this stack
  // instead. Calls visit(pid, process) for each of their processes, whose rows have to be written again.
  void Rewrite(const Id128& unknown_stack,
               const std::function<void(int32_t pid, const Id128& process)>& visit);

  // Call when the thread has ended.
  void Forget(int32_t tid) { absences_.erase(tid); }
  // Call after ends of threads were lost; `runs` says whether a thread goes on.
  void ForgetEnded(const std::function<bool(int32_t pid, int32_t tid)>& runs);
  // How many threads may still come back.
  size_t threads() const { return absences_.size(); }

 private:
  struct Absence {
    gpusonde_off_cpu_head head;
    Id128 process;
    Id128 stack;
    model::ThreadState state;
  };
  void Write(const Absence& absence, model::ThreadState state, int64_t from_ns, int64_t to_ns);

  int64_t epoch_offset_ns_;
  int64_t start_ns_ = 0;
  int64_t end_ns_ = std::numeric_limits<int64_t>::max();
  Rows& rows_;
  // By thread, oldest first: begins whose end may still come. After an end, only the newest can get another.
  std::unordered_map<int32_t, std::vector<Absence>> absences_;
};

}  // namespace gpusonde::agent
