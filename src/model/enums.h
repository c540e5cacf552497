// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "model/table.h"

namespace gpusonde::model {

// What kind of code a location is in.
enum class FrameKind : uint8_t { kUnknown, kNative, kKernel, kJit, kPython, kGpu };

// Whether a sampled thread was running, and if not, what it waited for: files, pipes and sockets (io); a lock
// held by another thread or in the kernel (lock); another thread's notification, semaphore or exit
// (condition); time, a signal, a child (sleep); a CPU (run_queue); a GPU, inside a CUDA call (gpu_wait).
enum class ThreadState : uint8_t { kOnCpu, kIo, kLock, kSleep, kRunQueue, kGpuWait, kCondition };

// Where rows come from.
enum class SourceKind : uint8_t { kRecord, kAgent, kImport };

// What a row of summed GPU work covers: lost records; all work with a name, except captured graphs; sampled
// launches, by stack; graph work, by the stack that captured it.
enum class WorkPart : uint8_t { kLost, kAll, kSampled, kCaptured };

template <>
struct EnumNames<WorkPart> {
  static constexpr std::string_view Name(WorkPart part) {
    constexpr std::string_view kNames[] = {"lost", "all", "sampled", "captured"};
    return kNames[static_cast<size_t>(part)];
  }
};

template <>
struct EnumNames<FrameKind> {
  static constexpr std::string_view Name(FrameKind kind) {
    constexpr std::string_view kNames[] = {"unknown", "native", "kernel", "jit", "python", "gpu"};
    return kNames[static_cast<size_t>(kind)];
  }
};

template <>
struct EnumNames<ThreadState> {
  static constexpr std::string_view Name(ThreadState state) {
    constexpr std::string_view kNames[] = {"on_cpu",    "io",       "lock",     "sleep",
                                           "run_queue", "gpu_wait", "condition"};
    return kNames[static_cast<size_t>(state)];
  }
};

template <>
struct EnumNames<SourceKind> {
  static constexpr std::string_view Name(SourceKind kind) {
    constexpr std::string_view kNames[] = {"record", "agent", "import"};
    return kNames[static_cast<size_t>(kind)];
  }
};

}  // namespace gpusonde::model
