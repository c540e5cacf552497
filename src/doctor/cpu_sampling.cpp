// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "doctor/advice.h"
#include "doctor/probes.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/stack_tables.h"

namespace gpusonde::doctor {

// Tries all of it: the sampling program that `record` uses, attached to the clocks of all CPUs.
Finding ProbeCpuSampling(const Settings&) {
  // The clock is too slow to take a sample during the probe, and the ring is the smallest possible.
  const auto start = []() -> Status {
    ASSIGN_OR_RETURN(const ebpf::StackTables tables, ebpf::StackTables::Create());
    TRY(ebpf::CpuSampler::Create({.frequency_hz = 0.1, .every_process = false, .ring_bytes = 4096}, tables));
    return {};
  };
  const Status sampler = start();
  if (!sampler.has_value()) {
    const bool refused = sampler.error().code == ErrorCode::kPermissionDenied;
    // Cut the advice from the message: the finding below has better advice.
    return Fails(sampler.error().message.substr(0, sampler.error().message.find(';')),
                 std::string(refused ? kNeedsPrivileges : kNeedsKernel));
  }
  return Works("loaded the sampling program and started it on every CPU's clock");
}

}  // namespace gpusonde::doctor
