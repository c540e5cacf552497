// SPDX-License-Identifier: Apache-2.0
#include "server/gpu_facts.h"

#include "base/saturated.h"

namespace gpusonde::server {

Result<std::optional<exporters::GpuFacts>> ReadGpuFacts(ApiData& data, const model::Selection& selection,
                                                        bool sampled) {
  ASSIGN_OR_RETURN(const std::vector<store::DeviceUse> uses, data.ReadDeviceUse(selection));
  exporters::GpuFacts facts;
  for (const store::DeviceUse& use : uses) {
    if (use.busy_ns == 0) continue;
    if (selection.device.has_value() && use.device.device != *selection.device) continue;
    facts.devices.push_back({use.device.name, use.device.ordinal, use.device.simulated});
    facts.busy_ns = AddSaturated(facts.busy_ns, use.busy_ns);
    facts.observed_ns = AddSaturated(facts.observed_ns, use.observed_ns);
    facts.kernels = AddSaturated(facts.kernels, use.kernels);
  }
  if (facts.devices.empty()) return std::nullopt;
  model::Selection part = selection;
  part.while_gpu_idle = false;
  ASSIGN_OR_RETURN(facts.time, data.ReadGpuProfile(part));
  if (!sampled) return facts;
  part.while_gpu_idle = true;
  ASSIGN_OR_RETURN(facts.cpu_while_idle, data.ReadProfile(part));
  if (!exporters::NeedsWaits(facts)) return facts;
  part.while_gpu_idle = false;
  part.off_cpu = true;
  ASSIGN_OR_RETURN(facts.waits, data.ReadProfile(part));
  return facts;
}

}  // namespace gpusonde::server
