// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "wire/nvidia/nccl_profiler.h"

namespace simgpu::nccl {

// The profiler plugin of this process, called as NCCL calls it: the library named in NCCL_PROFILER_PLUGIN,
// through its newest interface that this NCCL knows (SIMGPU_NCCL_PROFILER, 3 to 6). Descriptors are those of
// version 5 and are converted for older ones as NCCL's src/plugin/profiler/profiler_v*.cc do. Thread-safe.
class Profiler {
 public:
  // The process's; opened at the first call.
  static Profiler& Get();

  // The events that are wanted now.
  int mask() const { return __atomic_load_n(&mask_, __ATOMIC_RELAXED); }
  void* Init(uint64_t communicator, const char* name, int nodes, int ranks, int rank);
  void Finalize(void* context);
  // The handle; null without a plugin, or if it gives none.
  void* Start(void* context, gpusonde_nccl_event_v5 event);
  void Stop(void* handle);
  void RecordState(void* handle, int state, gpusonde_nccl_state_v4* arguments);

 private:
  Profiler();
  void* StartV4(void* context, const gpusonde_nccl_event_v5& event);
  void* StartV3(void* context, const gpusonde_nccl_event_v5& event);

  int version_ = 0;  // 0: no plugin
  int mask_ = 0;     // the plugin writes it
  const gpusonde_nccl_profiler_v3* v3_ = nullptr;
  const gpusonde_nccl_profiler_v4* v4_ = nullptr;
  const gpusonde_nccl_profiler_v5* v5_ = nullptr;  // and 6
  // What version 3 gets with each call; of the communicator created last, as processes here have one.
  uint64_t communicator_ = 0;
  std::string name_;
};

}  // namespace simgpu::nccl
