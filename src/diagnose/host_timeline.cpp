// SPDX-License-Identifier: Apache-2.0
#include "diagnose/host_timeline.h"

#include <array>
#include <cmath>

#include "diagnose/incident_table.h"

namespace gpusonde::diagnose {
namespace {

using model::Metric;

// The kernel spreads waits over a limited number of buckets; a longer value is spread here, over a minute at
// most.
constexpr int64_t kMaxBuckets = 6000;
// One row holds one polling round; rows with more values, or values of longer times, are malformed.
constexpr size_t kMaxValues = 100'000;
constexpr int64_t kMaxBucketNs = 60 * kNanosPerSecond;
// And so are those that begin further from the epoch: sums of times stay within 64 bits.
constexpr int64_t kMaxStartNs = int64_t{1} << 61;

// A thread in these states is at work, or would be.
constexpr std::array kActiveStates = {ThreadState::kRunning, ThreadState::kRunQueue, ThreadState::kBlockedIo,
                                      ThreadState::kBlocked};

double Overlap(int64_t start_ns, int64_t length_ns, const TimeRange& range) {
  const int64_t overlap_ns = std::min(start_ns + length_ns, range.to_ns) - std::max(start_ns, range.from_ns);
  return overlap_ns <= 0 ? 0 : static_cast<double>(overlap_ns) / static_cast<double>(length_ns);
}

// Calls visit(sum, its part that lies in the range) for each sum of a series that touches the range.
template <class Series, class Visit>
void ForEachSum(const Series& series, const TimeRange& range, Visit visit) {
  auto at = series.upper_bound(range.from_ns);
  if (at != series.begin()) --at;
  for (; at != series.end() && at->first < range.to_ns; ++at)
    visit(at->second, Overlap(at->first, at->second.length_ns, range));
}

}  // namespace

void HostTimeline::Ingest(const model::Signal& signal) {
  const std::optional<Metric> metric = model::FindMetric(signal.metric);
  if (!metric.has_value() || signal.bucket_ns <= 0 || signal.bucket_ns > kMaxBucketNs ||
      signal.values.size() > kMaxValues || signal.start_ns > kMaxStartNs || signal.start_ns < -kMaxStartNs)
    return;
  if (!signal.tid.has_value()) {
    AddToSums(signal, *metric);
    return;
  }
  const std::optional<ThreadState> state = ThreadStateOf(*metric);
  const bool has_time = std::ranges::any_of(signal.values, [](int64_t value) { return value > 0; });
  if (!state.has_value() || !signal.process.has_value() || !has_time) return;
  AddToThread(threads_[*signal.process][*signal.tid], signal, *state);
  if (state == ThreadState::kStopped) ever_stopped_[*signal.process].insert(*signal.tid);
}

void HostTimeline::AddToThread(BucketRuns& buckets, const model::Signal& signal, ThreadState state) {
  const Id128 other = signal.other.value_or(Id128{});
  const int64_t length_ns = signal.bucket_ns;
  const auto add = [&](int64_t start_ns, int64_t count, int64_t ns) {
    buckets.Add(start_ns, length_ns, count, state, static_cast<double>(ns), other);
  };
  const std::vector<int64_t>& values = signal.values;
  for (size_t i = 0, equal = 1; i < values.size(); i += equal) {
    equal = 1;
    const int64_t value = values[i];
    const int64_t start_ns = signal.start_ns + static_cast<int64_t>(i) * length_ns;
    if (value > length_ns) {
      // It ends with its bucket; those before it are full, but for the first.
      const int64_t full = std::min(value / length_ns, kMaxBuckets);
      add(start_ns - (full - 1) * length_ns, full, length_ns);
      if (value % length_ns > 0 && full < kMaxBuckets) add(start_ns - full * length_ns, 1, value % length_ns);
    } else if (value > 0) {
      while (i + equal < values.size() && values[i + equal] == value) ++equal;
      add(start_ns, static_cast<int64_t>(equal), value);
    }
  }
}

void HostTimeline::AddToSums(const model::Signal& signal, Metric metric) {
  int64_t start_ns = signal.start_ns;
  for (const int64_t value : signal.values) {
    Sum& sum = sums_[{metric, signal.process}][start_ns];
    sum.length_ns = signal.bucket_ns;
    sum.value += static_cast<double>(value);
    start_ns += signal.bucket_ns;
  }
}

void HostTimeline::Ingest(const model::MetricValue& reading) {
  const std::optional<Metric> metric = model::FindMetric(reading.metric);
  if (!metric.has_value() || !reading.device.has_value() || !std::isfinite(reading.value)) return;
  readings_[{*metric, *reading.device}].emplace(reading.time_ns, Reading{reading.process, reading.value});
}

const BucketRuns* HostTimeline::BucketsOf(const Id128& process, int32_t tid) const {
  const auto threads = threads_.find(process);
  if (threads == threads_.end()) return nullptr;
  const auto thread = threads->second.find(tid);
  return thread == threads->second.end() ? nullptr : &thread->second;
}

ThreadTime HostTimeline::Of(const Id128& process, int32_t tid, const TimeRange& range) const {
  ThreadTime sum;
  ForEachBucket(process, tid, range,
                [&](const ThreadTime& whole, const TimeRange& bucket, const TimeRange& part) {
                  sum.Add(whole, Overlap(bucket.from_ns, bucket.to_ns - bucket.from_ns, part));
                });
  return sum;
}

std::optional<int32_t> HostTimeline::BusiestThread(const Id128& process, const TimeRange& range,
                                                   std::optional<int32_t> except) const {
  std::optional<int32_t> busiest;
  double most = 0;
  ForEachOther(process, range, except, [&](int32_t tid, const ThreadTime& time) {
    double active = 0;
    for (const ThreadState state : kActiveStates) active += time[state];
    if (active <= most) return;
    most = active;
    busiest = tid;
  });
  return busiest;
}

std::map<Id128, double> HostTimeline::WaitsOfOthers(const Id128& process, const TimeRange& range,
                                                    int32_t except) const {
  std::map<Id128, double> waits;
  ForEachOther(process, range, except, [&](int32_t, const ThreadTime& time) {
    for (const ThreadState state : kWaitStates)
      for (const auto& [who, ns] : time.By(state)) waits[who] += ns;
  });
  return waits;
}

ThreadTime HostTimeline::LongestStopped(const Id128& process, const TimeRange& range, int32_t except) const {
  ThreadTime longest;
  const auto threads = ever_stopped_.find(process);
  if (threads == ever_stopped_.end()) return longest;
  for (const int32_t tid : threads->second) {
    if (tid == except) continue;
    ThreadTime time = Of(process, tid, range);
    if (time[ThreadState::kStopped] > longest[ThreadState::kStopped]) longest = std::move(time);
  }
  return longest;
}

std::optional<int64_t> HostTimeline::KnownSince(const Id128& process, int32_t tid) const {
  const BucketRuns* buckets = BucketsOf(process, tid);
  return buckets == nullptr || buckets->empty() ? std::nullopt : std::optional(buckets->first_ns());
}

int64_t HostTimeline::KnownUntil(const Id128& process, int32_t tid) const {
  const BucketRuns* buckets = BucketsOf(process, tid);
  return buckets == nullptr || buckets->empty() ? 0 : buckets->last_ns();
}

double HostTimeline::RunningOf(const Id128& process, const TimeRange& range) const {
  double ns = 0;
  const auto threads = threads_.find(process);
  if (threads == threads_.end()) return ns;
  for (const auto& [tid, buckets] : threads->second) ns += buckets.SumOf(ThreadState::kRunning, range);
  return ns;
}

std::optional<double> HostTimeline::SumOf(Metric metric, std::optional<Id128> process,
                                          const TimeRange& range) const {
  const auto series = sums_.find({metric, process});
  if (series == sums_.end()) return std::nullopt;
  double sum = 0;
  ForEachSum(series->second, range, [&](const auto& each, double part) { sum += each.value * part; });
  return sum;
}

std::optional<double> HostTimeline::RateWhileMeasured(Metric metric, const Id128& process,
                                                      const TimeRange& range) const {
  const auto series = sums_.find({metric, process});
  if (series == sums_.end()) return std::nullopt;
  double sum = 0, measured_ns = 0;
  ForEachSum(series->second, range, [&](const auto& each, double part) {
    sum += each.value * part;
    measured_ns += static_cast<double>(each.length_ns) * part;
  });
  return measured_ns > 0 ? std::optional(sum / measured_ns) : std::nullopt;
}

std::vector<std::pair<Id128, double>> HostTimeline::SumsByProcess(Metric metric,
                                                                  const TimeRange& range) const {
  std::vector<std::pair<Id128, double>> sums;
  for (const auto& [key, series] : sums_) {
    if (key.first != metric || !key.second.has_value()) continue;
    if (const double sum = SumOf(metric, key.second, range).value_or(0); sum > 0)
      sums.emplace_back(*key.second, sum);
  }
  return sums;
}

std::optional<double> HostTimeline::MeanReading(Metric metric, const Id128& device, const TimeRange& range,
                                                uint64_t bits) const {
  const auto found = readings_.find({metric, device});
  if (found == readings_.end()) return std::nullopt;
  const auto value_of = [&](double value) {
    if (bits == 0) return value;
    return (static_cast<uint64_t>(std::clamp(value, 0.0, 1e18)) & bits) != 0 ? 1.0 : 0.0;
  };
  double sum = 0;
  int count = 0;
  std::optional<double> before;
  for (const auto& [time_ns, reading] : found->second) {
    if (reading.process.has_value()) continue;
    if (time_ns >= range.to_ns) break;
    if (time_ns < range.from_ns) {
      before = value_of(reading.value);
      continue;
    }
    sum += value_of(reading.value);
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : before;
}

std::vector<std::pair<int64_t, double>> HostTimeline::ReadingsOf(Metric metric, const Id128& device,
                                                                 const TimeRange& range) const {
  std::vector<std::pair<int64_t, double>> values;
  const auto found = readings_.find({metric, device});
  if (found == readings_.end()) return values;
  for (auto at = found->second.lower_bound(range.from_ns);
       at != found->second.end() && at->first < range.to_ns; ++at)
    if (!at->second.process.has_value()) values.emplace_back(at->first, at->second.value);
  return values;
}

std::set<Id128> HostTimeline::Devices() const {
  std::set<Id128> devices;
  for (const auto& [key, readings] : readings_) devices.insert(key.second);
  return devices;
}

std::optional<int64_t> HostTimeline::FirstSumNs(Metric metric) const {
  const auto series = sums_.find({metric, std::nullopt});
  if (series == sums_.end() || series->second.empty()) return std::nullopt;
  return series->second.begin()->first;
}

std::vector<std::pair<Id128, double>> HostTimeline::ReadingsByProcess(Metric metric, const Id128& device,
                                                                      const TimeRange& range) const {
  std::map<Id128, double> sums;
  const auto found = readings_.find({metric, device});
  if (found == readings_.end()) return {};
  for (auto at = found->second.lower_bound(range.from_ns);
       at != found->second.end() && at->first < range.to_ns; ++at)
    if (at->second.process.has_value()) sums[*at->second.process] += at->second.value;
  // Readings are taken once a second.
  const double seconds = std::max(1.0, static_cast<double>(range.to_ns - range.from_ns) / 1e9);
  std::vector<std::pair<Id128, double>> means;
  for (const auto& [process, sum] : sums) means.emplace_back(process, sum / seconds);
  return means;
}

std::vector<int64_t> HostTimeline::XidsOf(const Id128& device, const TimeRange& range) const {
  std::vector<int64_t> codes;
  const auto found = readings_.find({Metric::kGpuXid, device});
  if (found == readings_.end()) return codes;
  for (auto at = found->second.lower_bound(range.from_ns - kIncidentTable.xid_ns);
       at != found->second.end() && at->first < range.to_ns; ++at)
    codes.push_back(std::llround(std::clamp(at->second.value, 0.0, 1e9)));
  return codes;
}

void HostTimeline::ForgetBefore(int64_t time_ns) {
  for (auto& [process, threads] : threads_) {
    for (auto& [tid, buckets] : threads) buckets.ForgetBefore(time_ns);
    std::erase_if(threads, [](const auto& thread) { return thread.second.empty(); });
  }
  std::erase_if(threads_, [](const auto& process) { return process.second.empty(); });
  for (auto& [process, stopped] : ever_stopped_) {
    const auto known = threads_.find(process);
    std::erase_if(stopped,
                  [&](int32_t tid) { return known == threads_.end() || !known->second.contains(tid); });
  }
  std::erase_if(ever_stopped_, [](const auto& process) { return process.second.empty(); });
  for (auto& [key, series] : sums_) series.erase(series.begin(), series.lower_bound(time_ns));
  std::erase_if(sums_, [](const auto& series) { return series.second.empty(); });
  for (auto& [key, readings] : readings_) {
    // Keep the last reading before: it is still valid.
    auto keep = readings.lower_bound(time_ns);
    if (keep != readings.begin()) readings.erase(readings.begin(), --keep);
  }
}

}  // namespace gpusonde::diagnose
