// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>

#include "doctor/capability.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {

std::string_view Name(Use use) {
  constexpr std::string_view kNames[] = {"record", "detail", "gpu", "scale"};
  return kNames[static_cast<size_t>(use)];
}

std::span<const Capability> AllCapabilities() {
  static constexpr std::array kCapabilities = {
      Capability{"bpf", Use::kRecord, ProbeBpf},
      Capability{"btf", Use::kRecord, ProbeBtf},
      Capability{"container_runtime", Use::kDetail, ProbeContainerRuntime},
      Capability{"cpu_sampling", Use::kRecord, ProbeCpuSampling},
      Capability{"cuda", Use::kGpu, ProbeCuda},
      Capability{"cupti", Use::kGpu, ProbeCupti},
      Capability{"duckdb", Use::kRecord, ProbeDuckdb},
      Capability{"gpu_processes", Use::kGpu, ProbeGpuProcesses},
      Capability{"host_signals", Use::kDetail, ProbeHostSignals},
      Capability{"inject", Use::kGpu, ProbeInject},
      Capability{"kallsyms", Use::kDetail, ProbeKallsyms},
      Capability{"kubelet_pod_resources", Use::kDetail, ProbeKubeletPodResources},
      Capability{"memlock", Use::kDetail, ProbeMemlock},
      Capability{"memory", Use::kDetail, ProbeMemory},
      Capability{"mpi", Use::kScale, ProbeMpi},
      Capability{"nvml", Use::kGpu, ProbeNvml},
      Capability{"perf_event", Use::kRecord, ProbePerfEvent},
      Capability{"privileges", Use::kDetail, ProbePrivileges},
      Capability{"recording_sandbox", Use::kDetail, ProbeRecordingSandbox},
      Capability{"ring_buffer", Use::kRecord, ProbeRingBuffer},
      Capability{"sideband", Use::kRecord, ProbeSideband},
      Capability{"state_folder", Use::kDetail, ProbeStateFolder},
      Capability{"tracepoints", Use::kRecord, ProbeTracepoints},
      Capability{"ui", Use::kDetail, ProbeUi},
      Capability{"uprobes", Use::kDetail, ProbeUprobes},
  };
  return kCapabilities;
}

}  // namespace gpusonde::doctor
