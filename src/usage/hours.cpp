// SPDX-License-Identifier: Apache-2.0
#include "usage/hours.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <tuple>

#include "model/tables/api_calls.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/metrics.h"
#include "model/tables/pod_devices.h"
#include "model/tables/processes.h"
#include "model/tables/sources.h"
#include "model/tables/syncs.h"
#include "store/rollups/windows.h"
#include "usage/groups.h"
#include "usage/names.h"

namespace gpusonde::usage {
namespace {

using store::kUsageHourNs;

// Sums of the same time from different begins differ by rounding: doubles of 31 days of ns by a few ns.
constexpr double kRoundingNs = 1000;

// Of each table that usage is read from, the earliest time that a row says something about. What a row says
// about earlier times (a process that an agent sees again after its restart) shows in the hour before.
struct DatedTable {
  std::string_view table;
  std::string_view begin;
};
constexpr std::array kDated = {
    DatedTable{model::kApiCalls.name(), "start_ns"},    DatedTable{model::kGpuSessions.name(), "start_ns"},
    DatedTable{model::kKernelPacks.name(), "start_ns"}, DatedTable{model::kKernels.name(), "start_ns"},
    DatedTable{model::kMemcpys.name(), "start_ns"},     DatedTable{model::kMemsets.name(), "start_ns"},
    DatedTable{model::kMetrics.name(), "time_ns"},      DatedTable{model::kPodDevices.name(), "start_ns"},
    DatedTable{model::kProcesses.name(), "started_ns"}, DatedTable{model::kSyncs.name(), "start_ns"},
};

int64_t HourOf(int64_t time_ns) { return time_ns - time_ns % kUsageHourNs; }

bool AreEqual(const store::HolderHour& one, const store::HolderHour& other) {
  const auto near = [](double a, double b) { return std::abs(a - b) <= kRoundingNs; };
  return near(one.busy_ns, other.busy_ns) && near(one.idle_ns, other.idle_ns) &&
         near(one.unobserved_ns, other.unobserved_ns) &&
         near(static_cast<double>(one.held_ns), static_cast<double>(other.held_ns));
}

// Hours that begin in the range; they are sorted.
std::span<const store::HolderHour> HoursIn(std::span<const store::HolderHour> hours, const TimeRange& range) {
  const auto first = std::ranges::lower_bound(hours, range.from_ns, {}, &store::HolderHour::start_ns);
  return {first, std::ranges::lower_bound(first, hours.end(), std::max(range.from_ns, range.to_ns), {},
                                          &store::HolderHour::start_ns)};
}

size_t HeapBytes(const std::string& text) {
  return text.capacity() > std::string().capacity() ? text.capacity() + 1 : 0;
}

}  // namespace

int64_t ChangedFrom(std::span<const model::Batch> batches) {
  int64_t from_ns = kNoneOfIt;
  for (const model::Batch& batch : batches) {
    // The run before ends when a new one begins, however long ago its last row came.
    if (batch.table == model::kSources.name() && batch.rows > 0) return kAllOfIt;
    const auto dated = std::ranges::find(kDated, batch.table, &DatedTable::table);
    if (dated == kDated.end()) continue;
    std::optional<TimeRange> times;
    store::Widen(batch, dated->begin, times);
    if (times.has_value()) from_ns = std::min(from_ns, std::max<int64_t>(times->from_ns, 0));
  }
  return from_ns;
}

Status UsageHours::Update(store::Store& store, int64_t changed_from_ns) {
  const int64_t first_ns = HourOf(std::max<int64_t>(std::min(changed_from_ns, covered_.to_ns), 0));
  // The hour before is read too: if it isn't what it was, something has changed what was long ago.
  const int64_t from_ns = first_ns - kUsageHourNs;
  if (covered_.from_ns < covered_.to_ns && from_ns >= covered_.from_ns) {
    store::Sightings seen = seen_;
    ASSIGN_OR_RETURN(store::GpuUsageHours read, store::ReadGpuUsageHours(store, from_ns, kMaxHours, seen));
    if (read.range.from_ns == from_ns && read.range.to_ns >= covered_.to_ns && Agrees(read)) {
      TRY(Replace(store, std::move(read)));
      seen_ = std::move(seen);
      return {};
    }
  }
  store::Sightings seen;
  ASSIGN_OR_RETURN(store::GpuUsageHours read, store::ReadGpuUsageHours(store, 0, kMaxHours, seen));
  UsageHours anew(max_bytes_);
  TRY(anew.Replace(store, std::move(read)));
  anew.seen_ = std::move(seen);
  *this = std::move(anew);
  return {};
}

// Whether the first hour that was read is what is known of it.
bool UsageHours::Agrees(const store::GpuUsageHours& read) const {
  const TimeRange hour{read.range.from_ns, read.range.from_ns + kUsageHourNs};
  const auto known = HoursIn(hours_, hour);
  const auto now = HoursIn(read.hours, hour);
  std::map<HolderKey, const store::HolderHour*> by_key;
  for (const store::HolderHour& each : known) by_key[KeyOf(holders_[each.holder].facts)] = &each;
  return known.size() == now.size() && std::ranges::all_of(now, [&](const store::HolderHour& each) {
           const auto found = by_key.find(KeyOf(read.holders[each.holder]));
           return found != by_key.end() && AreEqual(*found->second, each);
         });
}

// Puts what was read in the place of the same and of later hours.
Status UsageHours::Replace(store::Store& store, store::GpuUsageHours read) {
  ASSIGN_OR_RETURN(const HolderNamer namer, HolderNamer::Read(store, read.devices));
  std::map<HolderKey, size_t> numbers;
  for (size_t i = 0; i < holders_.size(); ++i) numbers[KeyOf(holders_[i].facts)] = i;
  std::vector<size_t> places;  // of the holders that were read
  for (store::HolderFacts& facts : read.holders) {
    const auto [known, is_new] = numbers.try_emplace(KeyOf(facts), holders_.size());
    if (is_new) holders_.emplace_back();
    places.push_back(known->second);
    facts.name = ApplicationOf(facts.name, facts.command);
    facts.command = {};
    holders_[known->second].facts = std::move(facts);
  }
  std::erase_if(hours_, [&](const store::HolderHour& hour) { return hour.start_ns >= read.range.from_ns; });
  for (store::HolderHour hour : read.hours) {
    hour.holder = places[hour.holder];
    hours_.push_back(hour);
  }
  if (covered_.from_ns >= covered_.to_ns) covered_.from_ns = read.range.from_ns;
  covered_.to_ns = read.range.to_ns;
  devices_ = std::move(read.devices);
  labels_ = namer.labels();
  ForgetBefore(HourOf(covered_.to_ns) - kMaxHours * kUsageHourNs);
  for (Holder& holder : holders_) {
    for (size_t by = 0; by < holder.names.size(); ++by)
      holder.names[by] = namer.Name({.by = static_cast<By>(by)}, holder.facts);
    holder.labels.clear();
    for (const std::string& label : labels_)
      if (std::string value = namer.Name({.by = By::kLabel, .label = label}, holder.facts); !value.empty())
        holder.labels[label] = std::move(value);
  }
  CountBytes();
  while (bytes_ > max_bytes_ && covered_.to_ns - covered_.from_ns > kUsageHourNs) {
    ForgetBefore(covered_.from_ns + std::max(kUsageHourNs, HourOf((covered_.to_ns - covered_.from_ns) / 8)));
    CountBytes();
  }
  is_cut_ = HourOf(read.oldest_ns) < covered_.from_ns;
  return {};
}

void UsageHours::ForgetBefore(int64_t time_ns) {
  if (time_ns <= covered_.from_ns) return;
  covered_.from_ns = time_ns;
  std::erase_if(hours_, [&](const store::HolderHour& hour) { return hour.start_ns < time_ns; });
  ForgetUnheld();
}

// Forgets the holders that no hour has.
void UsageHours::ForgetUnheld() {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> places(holders_.size(), kNone);
  std::vector<Holder> kept;
  for (store::HolderHour& hour : hours_) {
    size_t& place = places[hour.holder];
    if (place == kNone) {
      place = kept.size();
      kept.push_back(std::move(holders_[hour.holder]));
    }
    hour.holder = place;
  }
  holders_ = std::move(kept);
}

void UsageHours::CountBytes() {
  bytes_ = sizeof *this + hours_.size() * sizeof hours_[0] + holders_.size() * sizeof holders_[0] +
           seen_.size() * (sizeof *seen_.begin() + 32) + devices_.size() * sizeof devices_[0];
  for (const Holder& holder : holders_) {
    bytes_ += HeapBytes(holder.facts.name) + HeapBytes(holder.facts.cgroup);
    for (const std::string& name : holder.names) bytes_ += HeapBytes(name);
    for (const auto& [label, value] : holder.labels)
      bytes_ += 2 * sizeof(std::string) + 48 + HeapBytes(label) + HeapBytes(value);
  }
}

Usage UsageHours::Sum(const TimeRange& range, const SumBy& by) const {
  struct Sums {
    model::HolderUse use;
    double readings_sum = 0;
    int64_t readings = 0;
  };
  std::map<size_t, Sums> by_holder;
  const TimeRange whole{HourOf(std::max(range.from_ns, covered_.from_ns)),
                        std::min(range.to_ns, covered_.to_ns)};
  // The same blocks for all stores that are asked.
  const int64_t first_ns = HourOf(std::max(range.from_ns, range.to_ns - kMaxHours * kUsageHourNs));
  const int64_t hours = (range.to_ns - first_ns) / kUsageHourNs + 1;
  const int64_t block_ns = ((hours - 1) / static_cast<int64_t>(model::kAccountBlocks) + 1) * kUsageHourNs;
  for (const store::HolderHour& hour : HoursIn(hours_, whole)) {
    Sums& sums = by_holder[hour.holder];
    sums.use.busy_ns += hour.busy_ns;
    sums.use.idle_ns += hour.idle_ns;
    sums.use.unobserved_ns += hour.unobserved_ns;
    sums.use.held_ns += hour.held_ns;
    model::AccountBlock& block =
        sums.use.blocks[static_cast<size_t>(std::max<int64_t>(hour.start_ns - first_ns, 0) / block_ns)];
    block.observed_ns += hour.busy_ns + hour.idle_ns;
    block.busy_ns += hour.busy_ns;
    sums.readings_sum += hour.readings_sum;
    sums.readings += hour.readings;
  }
  GroupsByName groups;
  for (const auto& [number, sums] : by_holder) {
    const Holder& holder = holders_[number];
    const auto label = holder.labels.find(by.label);
    const std::string name = by.by != By::kLabel            ? holder.names[static_cast<size_t>(by.by)]
                             : label == holder.labels.end() ? std::string()
                                                            : label->second;
    std::optional<double> utilization;
    if (sums.readings > 0)
      utilization = std::clamp(sums.readings_sum / static_cast<double>(sums.readings), 0.0, 1.0);
    groups.Add(name, holder.facts, sums.use, utilization);
  }
  Usage usage{.range = whole.from_ns < whole.to_ns ? whole : TimeRange(), .by = by, .groups = groups.Take()};
  usage.labels = labels_;
  AddDevices(devices_, usage);
  return usage;
}

}  // namespace gpusonde::usage
