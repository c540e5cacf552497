// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "agent/process_table.h"
#include "agent/rows.h"
#include "base/id128.h"
#include "model/enums.h"
#include "sources/ebpf/off_cpu.h"

namespace gpusonde::agent {

// What the thread waits for, by the system call that it waits in and what the kernel says of it. A lock is
// whatever a thread waits for in memory that it shares (futexes, semaphores, locks of the kernel); I/O is
// files, pipes and sockets, and waiting for any of them; all else is sleep.
model::ThreadState WaitOf(const gpusonde_off_cpu_head& begin);

// Whether a thread with this stack, leaf first, waits for a GPU: one of the program's own calls into the CUDA
// driver is at work. A thread that the driver made for itself doesn't.
bool IsInCudaCall(const Process& process, std::span<const uint64_t> user_frames);

// Puts the two halves of a thread's absence from its CPU together, and writes it as one or two samples: the
// time it waited for something, and the time it waited for a CPU. Not thread-safe.
class OffCpuRows {
 public:
  OffCpuRows(int64_t epoch_offset_ns, Rows& rows) : epoch_offset_ns_(epoch_offset_ns), rows_(rows) {}

  // Waits count between these, CLOCK_MONOTONIC.
  void set_limits(int64_t start_ns, int64_t end_ns) {
    start_ns_ = start_ns;
    end_ns_ = end_ns;
  }

  // In the order in which their stacks were taken.
  void Begin(const gpusonde_off_cpu_head& head, const Id128& process, const Id128& stack, bool in_cuda_call);
  // After the begins of the same time.
  void End(const ebpf::OffCpu::End& end);

  // Begins carry ids of stacks, and what those mean was lost or is another file's: waits that go on now end
  // with this stack instead.
  void Rewrite(const Id128& unknown_stack);

  // The thread has ended.
  void Forget(int32_t tid) { absences_.erase(tid); }

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
  // By thread, oldest first: those that an end may still follow. Of all but the last none will, once there
  // was an end.
  std::unordered_map<int32_t, std::vector<Absence>> absences_;
};

}  // namespace gpusonde::agent
