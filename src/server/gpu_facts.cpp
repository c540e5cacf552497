// SPDX-License-Identifier: Apache-2.0
#include "server/gpu_facts.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/saturated.h"

namespace gpusonde::server {
namespace {

// Adds what the SMs of the devices with work did, as means.
Status AddActivity(ApiData& data, const model::Selection& selection, const std::vector<Id128>& devices,
                   exporters::GpuFacts& facts) {
  constexpr std::array kMetrics = {model::Metric::kGpuSmActive, model::Metric::kGpuTensorActive};
  ASSIGN_OR_RETURN(const std::vector<store::MetricMean> means, data.ReadMetricMeans(selection, kMetrics));
  const auto mean_of = [&](model::Metric metric) -> std::optional<double> {
    double sum = 0;
    int count = 0;
    for (const store::MetricMean& mean : means) {
      if (mean.metric != metric || std::ranges::find(devices, mean.device) == devices.end()) continue;
      sum += mean.mean;
      ++count;
    }
    if (count == 0) return std::nullopt;
    return sum / count;
  };
  facts.sm_active = mean_of(model::Metric::kGpuSmActive);
  facts.tensor_active = mean_of(model::Metric::kGpuTensorActive);
  return {};
}

// The devices without work. A GPU that is divided into MIG instances never has any itself.
int64_t CountIdle(const std::vector<store::DeviceUse>& uses) {
  std::set<Id128> divided;
  for (const store::DeviceUse& use : uses)
    if (use.device.parent.has_value()) divided.insert(*use.device.parent);
  return std::ranges::count_if(uses, [&](const store::DeviceUse& use) {
    return use.busy_ns == 0 && !divided.contains(use.device.device);
  });
}

}  // namespace

Result<std::optional<exporters::GpuFacts>> ReadGpuFacts(ApiData& data, const model::Selection& selection,
                                                        bool sampled) {
  ASSIGN_OR_RETURN(const std::vector<store::DeviceUse> uses, data.ReadDeviceUse(selection));
  exporters::GpuFacts facts;
  std::vector<Id128> with_work;
  for (const store::DeviceUse& use : uses) {
    if (use.busy_ns == 0) continue;
    if (selection.device.has_value() && use.device.device != *selection.device) continue;
    facts.devices.push_back({use.device.name, use.device.ordinal, use.device.simulated});
    with_work.push_back(use.device.device);
    facts.busy_ns = AddSaturated(facts.busy_ns, use.busy_ns);
    facts.observed_ns = AddSaturated(facts.observed_ns, use.observed_ns);
    facts.partial_ns = AddSaturated(facts.partial_ns, use.partial_ns);
    facts.paused_ns = AddSaturated(facts.paused_ns, use.paused_ns);
    facts.kernels = AddSaturated(facts.kernels, use.kernels);
  }
  if (facts.devices.empty()) return std::nullopt;
  if (!selection.device.has_value()) facts.idle_devices = CountIdle(uses);
  TRY(AddActivity(data, selection, with_work, facts));
  model::Selection part = selection;
  part.while_gpu_idle = false;
  ASSIGN_OR_RETURN(facts.time, data.ReadGpuProfile(part));
  if (!sampled) {
    ASSIGN_OR_RETURN(facts.launch_threads, data.ReadLaunchThreadsWhileIdle(part));
    return facts;
  }
  part.while_gpu_idle = true;
  ASSIGN_OR_RETURN(facts.cpu_while_idle, data.ReadProfile(part));
  if (!exporters::NeedsWaits(facts)) return facts;
  part.while_gpu_idle = false;
  part.off_cpu = true;
  ASSIGN_OR_RETURN(facts.waits, data.ReadProfile(part));
  return facts;
}

}  // namespace gpusonde::server
