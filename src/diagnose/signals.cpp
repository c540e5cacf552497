// SPDX-License-Identifier: Apache-2.0
#include "diagnose/signals.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/time.h"
#include "diagnose/cause.h"

namespace gpusonde::diagnose {
namespace {

using model::Metric;

double Seconds(const TimeRange& when) {
  return static_cast<double>(std::max<int64_t>(when.to_ns - when.from_ns, 1)) / kNanosPerSecond;
}

// The rate per second of a summed metric, before and during the incident.
Change RateOf(const SignalScope& scope, Metric metric, std::optional<Id128> process) {
  const auto rate = [&](const TimeRange& when) {
    return scope.host.SumOf(metric, process, when).transform([&](double sum) { return sum / Seconds(when); });
  };
  return {rate(scope.calm), rate(scope.incident)};
}

// Records a summed time as a share of the interval.
void AddShare(const SignalScope& scope, Metric metric, std::optional<Id128> process, Situation& situation) {
  Change change = RateOf(scope, metric, process);
  if (change.before.has_value()) *change.before /= kNanosPerSecond;
  if (change.during.has_value()) *change.during /= kNanosPerSecond;
  if (change.before.has_value() || change.during.has_value()) situation.signals[metric] = change;
}

// The CPUs that the quotas of the program's cgroups allow: before the incident over all of the time, of which
// a part may have been without a quota, and in the incident while there was one.
void AddQuota(const SignalScope& scope, Situation& situation) {
  const auto during =
      scope.host.RateWhileMeasured(Metric::kCgroupCpuQuota, scope.program.process, scope.incident);
  if (!during.has_value()) return;
  AddShare(scope, Metric::kCgroupCpuQuota, scope.program.process, situation);
  situation.signals[Metric::kCgroupCpuQuota].during = during;
}

void AddNice(const SignalScope& scope, Situation& situation) {
  const auto mean = [&](const TimeRange& when) {
    return scope.host.RateWhileMeasured(Metric::kProcessNice, scope.program.process, when);
  };
  if (const Change nice{mean(scope.calm), mean(scope.incident)}; nice.during.has_value())
    situation.signals[Metric::kProcessNice] = nice;
}

// CPU time of the program's processes per second; nullopt without any signal.
std::optional<double> OwnCpu(const SignalScope& scope, const TimeRange& when) {
  double ns = 0;
  for (const Id128& process : scope.program.family) ns += scope.host.RunningOf(process, when);
  return ns > 0 ? std::optional(ns / Seconds(when)) : std::nullopt;
}

// Bytes per second by actor.
Shares UseOf(const SignalScope& scope, Metric metric, const TimeRange& when) {
  Shares use;
  for (const auto& [process, bytes] : scope.host.SumsByProcess(metric, when)) {
    Actor actor = scope.actors.ActorOf(process, scope.program.family);
    actor.own |= scope.program.ranks.contains(process);
    AddShare(use, actor, bytes / Seconds(when));
  }
  return use;
}

// Sums the retransmits of the program's processes and of the other ranks of its job.
void DescribeRetransmits(const SignalScope& scope, Situation& situation) {
  const auto add = [&](const Id128& process) {
    const Change change = RateOf(scope, Metric::kNetworkRetransmits, process);
    if (change.before.has_value())
      situation.retransmits.before = situation.retransmits.before.value_or(0) + *change.before;
    if (change.during.has_value())
      situation.retransmits.during = situation.retransmits.during.value_or(0) + *change.during;
  };
  for (const Id128& process : scope.program.family) add(process);
  for (const Id128& rank : scope.program.ranks) add(rank);
}

void DescribeNeighbours(const SignalScope& scope, const Id128& device, Situation& situation) {
  const auto shares_of = [&](const TimeRange& when) {
    Shares shares;
    for (const auto& [process, share] :
         scope.host.ReadingsByProcess(Metric::kGpuProcessUtilization, device, when))
      if (!scope.program.family.contains(process))
        AddShare(shares, scope.actors.ActorOf(process, scope.program.family), share);
    return shares;
  };
  const Shares before = shares_of(scope.calm);
  const Shares during = shares_of(scope.incident);
  const auto change_of = [&](const Actor& actor) -> Change& {
    Change& change = situation.neighbours[NameActor(actor)];
    if (!change.known()) change = {0, 0};
    return change;
  };
  for (const auto& [actor, share] : during) *change_of(actor).during += share;
  for (const auto& [actor, share] : before) {
    const auto now = during.find(actor);
    *change_of(now == during.end() ? actor : now->first).before += share;
  }
}

void DescribeDevice(const SignalScope& scope, const Id128& device, Situation& situation) {
  const auto mean = [&](Metric metric, uint64_t bits) {
    const auto of = [&](const TimeRange& when) { return scope.host.MeanReading(metric, device, when, bits); };
    return Change{of(scope.calm), of(scope.incident)};
  };
  for (const Metric metric :
       {Metric::kGpuClockSm, Metric::kGpuPcieGeneration, Metric::kGpuPcieRx, Metric::kGpuPcieTx,
        Metric::kGpuPcieWidth, Metric::kGpuTemperature, Metric::kGpuPower})
    if (const Change change = mean(metric, 0); change.known()) situation.signals[metric] = change;
  // The mean of a link that had fewer lanes for a part of the time is no number of lanes.
  if (const auto lanes = situation.signals.find(Metric::kGpuPcieWidth);
      lanes != situation.signals.end() && lanes->second.rise() < 0)
    for (const auto& [time_ns, reading] :
         scope.host.ReadingsOf(Metric::kGpuPcieWidth, device, scope.incident))
      lanes->second.during = std::min(*lanes->second.during, reading);
  if (const Change reasons = mean(Metric::kGpuThrottleReasons, model::kSlowingThrottleBits); reasons.known())
    situation.signals[Metric::kGpuThrottleReasons] = reasons;
  if (const Change busy = mean(Metric::kGpuUtilization, 0); busy.known()) {
    Change& busiest = situation.signals[Metric::kGpuUtilization];
    if (busiest.during.value_or(0) <= *busy.during) busiest = busy;
  }
  for (const int64_t code : scope.host.XidsOf(device, scope.incident)) situation.xids.push_back(code);
  DescribeNeighbours(scope, device, situation);
}

}  // namespace

void DescribeSignals(const SignalScope& scope, Situation& situation) {
  for (const Metric metric :
       {Metric::kHostPressureCpu, Metric::kHostPressureIo, Metric::kHostPressureMemory, Metric::kHostSteal})
    AddShare(scope, metric, std::nullopt, situation);
  AddShare(scope, Metric::kCgroupThrottled, scope.program.process, situation);
  AddQuota(scope, situation);
  AddShare(scope, Metric::kCgroupIoThrottled, scope.program.process, situation);
  AddShare(scope, Metric::kProcessCpus, scope.program.process, situation);
  AddShare(scope, Metric::kProcessBlocked, scope.program.process, situation);
  AddNice(scope, situation);
  AddShare(scope, Metric::kProcessStopped, scope.program.process, situation);
  situation.disk_before = UseOf(scope, Metric::kDiskBytes, scope.calm);
  situation.disk_during = UseOf(scope, Metric::kDiskBytes, scope.incident);
  situation.network_before = UseOf(scope, Metric::kNetworkBytes, scope.calm);
  situation.network_during = UseOf(scope, Metric::kNetworkBytes, scope.incident);
  DescribeRetransmits(scope, situation);
  // Costly, as it reads a minute of all threads: only if the program's threads wait for each other.
  if (situation.excess(State::kRunQueueOwn) > situation.excess_ns() / 20)
    situation.own_cpu = {OwnCpu(scope, scope.calm), OwnCpu(scope, scope.incident)};
  for (const Id128& device : scope.devices) DescribeDevice(scope, device, situation);
}

}  // namespace gpusonde::diagnose
