// SPDX-License-Identifier: Apache-2.0
#include "agent/host_files.h"

#include <algorithm>
#include <cmath>

#include "agent/polled_sum.h"
#include "base/fd.h"
#include "sources/proc/allowed_cpus.h"
#include "sources/proc/host_state.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {

using model::Metric;

namespace {

constexpr size_t kMaxCgroupsFile = 64 << 10;  // bytes

// Empty for a process that has ended.
std::string ReadCgroups(int32_t pid) {
  return ReadFile("/proc/" + std::to_string(pid) + "/cgroup", kMaxCgroupsFile).value_or("");
}

}  // namespace

HostFiles::Quota HostFiles::QuotaOf(int32_t pid, std::string cgroups) {
  Quota quota{std::move(cgroups), proc::CpuCgroups(pid), {}, proc::IoLimits::Of(pid)};
  static_cast<void>(quota.throttled.Update(proc::ReadThrottledNs(quota.cpu_groups)));
  return quota;
}

void HostFiles::SetWorkloads(const std::map<Id128, int32_t>& pids) {
  for (const auto& [id, pid] : pids)
    if (!quotas_.contains(pid)) quotas_.emplace(pid, QuotaOf(pid, ReadCgroups(pid)));
  std::erase_if(quotas_, [&](const auto& quota) {
    return std::ranges::none_of(pids, [&](const auto& entry) { return entry.second == quota.first; });
  });
}

void HostFiles::Write(const Id128& source, int64_t epoch_offset_ns, int64_t now_ns,
                      const std::function<std::optional<Id128>(int32_t pid)>& identify,
                      model::BatchBuilder<decltype(model::kSignals)>& rows) {
  if (quotas_.empty()) {
    read_ns_ = 0;
    return;
  }
  const int64_t since_ns = std::exchange(read_ns_, now_ns);
  const auto add = [&](Metric metric, std::optional<Id128> process, std::optional<int64_t> sum) {
    if (!sum.has_value() || since_ns == 0 || now_ns <= since_ns) return;
    rows.Append(
        PolledSum(source, {since_ns + epoch_offset_ns, now_ns + epoch_offset_ns}, metric, process, *sum));
  };
  const auto pressure = [&](size_t which, Metric metric, proc::Resource resource) {
    add(metric, std::nullopt, pressure_[which].Update(proc::ReadPressureNs(resource)));
  };
  pressure(0, Metric::kHostPressureCpu, proc::Resource::kCpu);
  pressure(1, Metric::kHostPressureIo, proc::Resource::kIo);
  pressure(2, Metric::kHostPressureMemory, proc::Resource::kMemory);
  add(Metric::kHostSteal, std::nullopt, steal_.Update(proc::ReadStealNs()));
  for (auto& [pid, quota] : quotas_) {
    if (std::string now = ReadCgroups(pid); !now.empty() && now != quota.cgroups)
      quota = QuotaOf(pid, std::move(now));
    const std::optional<int64_t> throttled_ns =
        quota.throttled.Update(proc::ReadThrottledNs(quota.cpu_groups));
    const std::optional<int64_t> io_throttled_ns = quota.io.TakeThrottledNs();
    const std::optional<Id128> process = identify(pid);
    if (!process.has_value()) continue;
    add(Metric::kCgroupThrottled, process, throttled_ns);
    add(Metric::kCgroupCpuQuota, process, proc::ReadCpuQuota(quota.cpu_groups).transform([&](double cpus) {
      return std::llround(cpus * static_cast<double>(now_ns - since_ns));
    }));
    add(Metric::kCgroupIoThrottled, process, io_throttled_ns);
    add(Metric::kProcessCpus, process,
        proc::CountAllowedCpus(pid).transform([&](int cpus) { return cpus * (now_ns - since_ns); }));
    if (const Result<proc::ProcessInfo> info = proc::ReadProcessStat(pid); info.has_value()) {
      add(Metric::kProcessStopped, process, proc::IsStopped(*info) ? now_ns - since_ns : 0);
      add(Metric::kProcessNice, process, std::max(info->nice, 0) * (now_ns - since_ns));
    }
  }
}

}  // namespace gpusonde::agent
