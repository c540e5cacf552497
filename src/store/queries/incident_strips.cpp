// SPDX-License-Identifier: Apache-2.0
#include "store/queries/incident_strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/time.h"
#include "model/metric_catalogue.h"
#include "store/queries/metric_query.h"
#include "store/queries/own_processes.h"
#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {
namespace {

using model::Metric;

constexpr std::array kOwnSignals = {Metric::kThreadRunning,   Metric::kThreadBlocked,
                                    Metric::kThreadWaiting,   Metric::kThreadSleeping,
                                    Metric::kCgroupThrottled, Metric::kCgroupIoThrottled};
// What delays a thread, also one of a process that the program started: its loaders read what it waits for.
constexpr std::array kDelays = {
    Metric::kThreadRunQueue, Metric::kThreadDisplaced, Metric::kThreadInterrupted, Metric::kThreadBlockedIo,
    Metric::kThreadReclaim,  Metric::kThreadNetwork,   Metric::kThreadStopped};
constexpr size_t kMaxSignals = 4;
constexpr double kMinSignalChange = 0.01;  // of a core

// What slows a GPU down. Its utilization and power follow from the slow steps and say nothing of their cause.
constexpr std::array kStates = {Metric::kGpuClockSm, Metric::kGpuClockMemory, Metric::kGpuPcieWidth,
                                Metric::kGpuPcieGeneration, Metric::kGpuTemperature};
constexpr size_t kMaxStates = 2;
constexpr double kMinStateChange = 0.03;  // of the greatest outside the incident

struct Buckets {
  TimeRange shown, incident;
  int count = 1;

  double length_ns() const { return static_cast<double>(shown.to_ns - shown.from_ns) / count; }
  Strip Empty() const {
    return {shown.from_ns, shown.to_ns, std::vector<std::optional<double>>(static_cast<size_t>(count))};
  }
  bool IsIncident(size_t bucket) const {
    const double middle_ns = (static_cast<double>(bucket) + 0.5) * length_ns();
    return middle_ns >= static_cast<double>(incident.from_ns - shown.from_ns) &&
           middle_ns < static_cast<double>(incident.to_ns - shown.from_ns);
  }
};

// A signal or state outside and in the incident.
struct Sides {
  double outside = 0, inside = 0;
  double Change() const { return std::abs(inside - outside); }
};

// Means; a bucket without a value counts as 0.
Sides MeansOf(const Buckets& buckets, const Strip& strip) {
  std::array<double, 2> sums{}, counts{};
  for (size_t i = 0; i < strip.values.size(); ++i) {
    const size_t side = buckets.IsIncident(i) ? 1 : 0;
    sums.at(side) += strip.values[i].value_or(0);
    ++counts.at(side);
  }
  return {sums[0] / std::max(counts[0], 1.0), sums[1] / std::max(counts[1], 1.0)};
}

// Greatest values: the mean clock of a GPU falls with its use, its greatest only if it can't run faster.
std::optional<Sides> GreatestOf(const Buckets& buckets, const Strip& strip) {
  std::array<std::optional<double>, 2> most;
  for (size_t i = 0; i < strip.values.size(); ++i) {
    std::optional<double>& side = most.at(buckets.IsIncident(i) ? 1 : 0);
    if (strip.values[i].has_value()) side = std::max(side.value_or(*strip.values[i]), *strip.values[i]);
  }
  if (!most[0].has_value() || !most[1].has_value()) return std::nullopt;
  return Sides{*most[0], *most[1]};
}

struct Changed {
  double change = 0;
  IncidentStrip strip;
};
// Appends the `most` that changed most.
void AppendMostChanged(std::vector<Changed> changed, size_t most, std::vector<IncidentStrip>& strips) {
  std::ranges::stable_sort(changed, std::ranges::greater{}, &Changed::change);
  for (Changed& one : changed | std::views::take(most)) strips.push_back(std::move(one.strip));
}

void Set(Strip& strip, int64_t bucket, double value) {
  if (bucket >= 0 && bucket < std::ssize(strip.values) && std::isfinite(value))
    strip.values[static_cast<size_t>(bucket)] = value;
}

Status AddSteps(Store& store, const Id128& process, int32_t tid, const Buckets& buckets,
                std::vector<IncidentStrip>& strips) {
  const SqlPart sql{
      "SELECT floor((end_ns - ?) / ?)::BIGINT AS bucket, avg(end_ns - start_ns)::DOUBLE FROM steps "
      "WHERE process = ? AND tid = ? AND end_ns >= ? AND end_ns < ? AND start_ns >= 0 AND "
      "start_ns <= end_ns GROUP BY bucket",
      {buckets.shown.from_ns, buckets.length_ns(), process, tid, buckets.shown.from_ns, buckets.shown.to_ns}};
  IncidentStrip steps{.metric = "step", .strip = buckets.Empty()};
  TRY(ForEachRow(store, sql, [&](const Rows& row) { Set(steps.strip, row.Int64(0), row.Float64(1)); }));
  strips.push_back(std::move(steps));
  return {};
}

// Adds a value of a bucket to those of the strip. A thread's time that is longer than its bucket began before
// it.
void AddValue(double begin_ns, double bucket_ns, double value, bool is_of_thread, double length_ns,
              Strip& sums) {
  const auto add = [&](double at, double amount) {
    if (at < 0 || at >= static_cast<double>(sums.values.size())) return;
    std::optional<double>& sum = sums.values[static_cast<size_t>(at)];
    sum = sum.value_or(0) + amount;
  };
  if (!is_of_thread || value <= bucket_ns) return add(std::floor(begin_ns / length_ns), value);
  const double end_ns = begin_ns + bucket_ns;
  const double from_ns = std::max(end_ns - value, 0.0);
  for (double at = std::floor(from_ns / length_ns);
       at * length_ns < end_ns && at < static_cast<double>(sums.values.size()); ++at)
    add(at, std::min((at + 1) * length_ns, end_ns) - std::max(at * length_ns, from_ns));
}

// Adds a row of a signal to the sums of its buckets. Files may say anything about its times.
void AddSignal(const Buckets& buckets, std::string_view metric, int64_t start_ns, int64_t bucket_ns,
               std::span<const int64_t> values, Strip& sums) {
  const bool is_of_thread = metric.starts_with("thread.");
  const auto first_ns = static_cast<double>(start_ns - buckets.shown.from_ns);
  const auto step_ns = static_cast<double>(bucket_ns);
  for (size_t i = 0; i < values.size(); ++i)
    AddValue(first_ns + static_cast<double>(i) * step_ns, step_ns, static_cast<double>(values[i]),
             is_of_thread, buckets.length_ns(), sums);
}

// Sums values here: DuckDB takes three times as long to unnest them.
Status AddSignals(Store& store, const Id128& process, const Buckets& buckets,
                  std::vector<IncidentStrip>& strips) {
  ASSIGN_OR_RETURN(std::vector<Id128> own, ReadOwnProcesses(store, process, buckets.shown));
  SqlPart sql{
      "SELECT metric, start_ns, bucket_ns, \"values\" FROM signals WHERE start_ns >= ? AND start_ns < ? AND ",
      {buckets.shown.from_ns - kNanosPerSecond, buckets.shown.to_ns}};
  sql += SqlPart{fmt::format("(process = ? AND metric IN ({}) OR metric IN ({}) AND ", ListNames(kOwnSignals),
                             ListNames(kDelays)),
                 {process}};
  sql += IsOfProcesses({.processes = std::move(own)});
  sql.text += ")";
  std::map<std::string, Strip, std::less<>> by_metric;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    auto sums = by_metric.find(row.Text(0));
    if (sums == by_metric.end()) sums = by_metric.emplace(row.Text(0), buckets.Empty()).first;
    AddSignal(buckets, sums->first, row.Int64(1), row.Int64(2), row.Int64List(3), sums->second);
  }));
  std::vector<Changed> changed;
  for (auto& [metric, strip] : by_metric) {
    for (std::optional<double>& value : strip.values)
      if (value.has_value()) *value /= buckets.length_ns();
    if (const double change = MeansOf(buckets, strip).Change(); change >= kMinSignalChange)
      changed.push_back({change, {.metric = metric, .strip = std::move(strip)}});
  }
  AppendMostChanged(std::move(changed), kMaxSignals, strips);
  return {};
}

// Fills the buckets after a reading until the next one.
void Hold(Strip& strip, double length_ns) {
  const double most = static_cast<double>(kMetricHoldNs) / length_ns;
  double held = 0;
  for (size_t i = 1; i < strip.values.size(); ++i) {
    held = strip.values[i].has_value() ? 0 : held + 1;
    if (held > 0 && held <= most) strip.values[i] = strip.values[i - 1];
  }
}

// Of the GPUs on which NVML saw the process.
Status AddStates(Store& store, const Id128& process, std::span<const GpuDevice> devices,
                 const Buckets& buckets, std::vector<IncidentStrip>& strips) {
  const SqlPart sql{
      fmt::format("SELECT device, process IS NULL, metric, floor((time_ns - ?) / ?)::BIGINT AS bucket, "
                  "sum(value), count(*) FROM metrics WHERE time_ns >= ? AND time_ns < ? AND "
                  "device IS NOT NULL AND (process = ? OR (process IS NULL AND metric IN ({}))) "
                  "GROUP BY ALL",
                  ListNames(kStates)),
      {buckets.shown.from_ns, buckets.length_ns(), buckets.shown.from_ns, buckets.shown.to_ns, process}};
  struct Mean {
    double sum = 0;
    int64_t count = 0;
  };
  std::set<Id128> of_process;
  std::map<Id128, std::map<std::pair<std::string, int64_t>, Mean>> by_device;  // by metric and bucket
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    if (row.Int64(1) == 0)
      of_process.insert(row.Id(0));
    else
      by_device[row.Id(0)][{std::string(row.Text(2)), row.Int64(3)}] = {row.Float64(4), row.Int64(5)};
  }));
  std::map<std::tuple<std::string, int32_t, int64_t>, Mean> means;  // by metric, ordinal and bucket
  for (const GpuDevice& device : devices) {
    if (!of_process.contains(device.device)) continue;
    for (const auto& [key, mean] : by_device[device.device]) {
      Mean& all = means[{key.first, device.ordinal, key.second}];
      all.sum += mean.sum;
      all.count += mean.count;
    }
  }
  std::map<std::pair<std::string, int32_t>, Strip> by_state;
  for (const auto& [key, mean] : means) {
    const auto& [metric, ordinal, bucket] = key;
    Set(by_state.try_emplace({metric, ordinal}, buckets.Empty()).first->second, bucket,
        mean.sum / static_cast<double>(mean.count));
  }
  std::vector<Changed> changed;
  for (auto& [state, strip] : by_state) {
    const std::optional<Sides> sides = GreatestOf(buckets, strip);
    if (!sides.has_value() || sides->Change() < kMinStateChange * sides->outside) continue;
    Hold(strip, buckets.length_ns());
    changed.push_back({sides->Change() / std::max(sides->outside, 1.0),
                       {.metric = state.first, .strip = std::move(strip), .gpu = state.second}});
  }
  AppendMostChanged(std::move(changed), kMaxStates, strips);
  return {};
}

}  // namespace

Result<std::vector<IncidentStrip>> ReadIncidentStrips(Store& store, const Id128& process, int32_t tid,
                                                      std::span<const GpuDevice> devices,
                                                      const TimeRange& shown, const TimeRange& incident,
                                                      int buckets) {
  const Buckets in{.shown = shown, .incident = incident, .count = buckets};
  std::vector<IncidentStrip> strips;
  TRY(AddSteps(store, process, tid, in, strips));
  TRY(AddSignals(store, process, in, strips));
  TRY(AddStates(store, process, devices, in, strips));
  return strips;
}

}  // namespace gpusonde::store
