// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "base/time_range.h"
#include "model/metric_catalogue.h"
#include "model/signal_bucket.h"
#include "store/queries/bucket_overlap.h"
#include "store/queries/profile_query.h"
#include "store/queries/selection_sql.h"
#include "store/rollups/sample_windows.h"
#include "store/sql/saturated_sum.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

// How much of each of the equal buckets of `range` sources observed, 0…1.
std::vector<double> ObservedShares(const TimeRange& range, std::vector<TimeRange> observed, double bucket_ns,
                                   size_t buckets) {
  std::vector<double> shares(buckets, 0.0);
  for (const TimeRange& run : UnionOf(std::move(observed))) {
    if (run.to_ns <= range.from_ns || run.from_ns >= range.to_ns) continue;
    const auto offset = [&](int64_t time_ns) {  // of a time in the range
      return static_cast<double>(static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(range.from_ns)) /
             bucket_ns;
    };
    AddOverlap(offset(std::max(run.from_ns, range.from_ns)), offset(std::min(run.to_ns, range.to_ns)), 1,
               shares);
  }
  return shares;
}

// Minimum length of a bucket in sampling periods: shorter ones would show when samples were taken rather than
// how busy CPUs were.
constexpr double kMinSamplesPerBucket = 4;

// Relative error of the samples of a long bucket that is not taken for missing signals.
constexpr double kSamplingError = 0.1;

// At most `buckets` ≥ 1 equal buckets, as many as are at least `finest_ns` long.
size_t BucketsNotBelow(double finest_ns, double length_ns, size_t buckets) {
  if (length_ns / static_cast<double>(buckets) >= finest_ns) return buckets;
  return static_cast<size_t>(std::max(1.0, length_ns / finest_ns));
}

struct CpuSampling {
  double period_ns = 0;  // between samples of one CPU, the longest of any source; 0 when not known
  double cpus = 0;       // of all hosts; 0 when not known
  bool none = false;     // all data is of imported traces
};

Result<CpuSampling> ReadCpuSampling(Store& store) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(
          "SELECT coalesce(max(period_ns), 0), coalesce(sum(cpus), 0)::DOUBLE, "
          "coalesce(bool_and(imported), false) FROM ("
          "SELECT max(1e9 / sampling_hz) FILTER (sampling_hz > 0 AND isfinite(sampling_hz)) AS period_ns, "
          "greatest(max(cpus), 0) AS cpus, bool_and(kind = 'import') AS imported FROM sources GROUP BY "
          "host)"));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any ? CpuSampling{rows->Float64(0), rows->Float64(1), rows->Int64(2) != 0} : CpuSampling{};
}

// Adds rows of CPU time to the strip.
Status AddTime(Store& store, const SqlPart& time, double bucket_ns, Strip& strip) {
  // By bucket where a row lies in one, else by window.
  SqlPart sql{fmt::format("SELECT CASE WHEN length_ns = 0 THEN floor((start_ns - ?) / ?) END AS bucket, "
                          "CASE WHEN length_ns > 0 THEN start_ns END AS window_ns, any_value(length_ns), "
                          "{} FROM ",
                          SaturatedSum("weight_ns")),
              {strip.from_ns, bucket_ns}};
  sql += time;
  sql.text += " GROUP BY bucket, window_ns";
  const auto last = static_cast<double>(strip.values.size() - 1);
  const auto add = [&](double bucket, double cpu_ns) {
    std::optional<double>& value = strip.values[static_cast<size_t>(bucket > 0 ? std::min(bucket, last) : 0)];
    value = value.value_or(0) + cpu_ns / bucket_ns;
  };
  return ForEachRow(store, sql, [&](const Rows& row) {
    const auto cpu_ns = static_cast<double>(row.Int64(3));
    if (!row.IsNull(0)) {
      add(row.Float64(0), cpu_ns);
      return;
    }
    // What stands for a time beyond the strip belongs to the strip nevertheless.
    const double begin = static_cast<double>(BoundTime(row.Int64(1)) - strip.from_ns) / bucket_ns;
    const double start = std::clamp(begin, 0.0, last);
    const double end =
        std::clamp(begin + static_cast<double>(row.Int64(2)) / bucket_ns, start + 1e-9, last + 1);
    for (double at = start; at < end; at = std::floor(at) + 1)
      add(at, cpu_ns * (std::min(std::floor(at) + 1, end) - at) / (end - start));
  });
}

Result<Strip> ReadSampledStrip(Store& store, const model::Selection& selection, const CpuSampling& sampling,
                               int buckets) {
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  const auto count = static_cast<size_t>(buckets);
  Strip strip{range.from_ns, range.to_ns, std::vector<std::optional<double>>(count)};
  if (range.to_ns <= range.from_ns) return strip;
  const double length_ns = LengthNs(range);
  if (const size_t coarse = BucketsNotBelow(kMinSamplesPerBucket * sampling.period_ns, length_ns, count);
      coarse < count) {
    ASSIGN_OR_RETURN(const Strip read,
                     ReadSampledStrip(store, selection, sampling, static_cast<int>(coarse)));
    for (size_t i = 0; i < count; ++i) strip.values[i] = read.values[i * coarse / count];
    return strip;
  }
  const double bucket_ns = length_ns / buckets;

  ASSIGN_OR_RETURN(const std::vector<TimeRange> observed, ReadSampled(store));
  const std::vector<double> shares = ObservedShares(range, observed, bucket_ns, count);
  for (size_t i = 0; i < count; ++i)
    if (shares[i] > 0) strip.values[i] = 0;

  model::Selection bounded = selection;
  bounded.from_ns = range.from_ns;
  bounded.to_ns = range.to_ns;
  // In buckets shorter than a window it would blur.
  const bool with_windows =
      bucket_ns >= static_cast<double>(kFiveMinutes.length_ns) && selection.filter.empty();
  ASSIGN_OR_RETURN(const CpuTime time,
                   with_windows ? CpuTimeIn(store, bounded, Detail::kThreads) : CpuSamplesIn(store, bounded));
  for (const SqlPart& part : time.parts) TRY(AddTime(store, part, bucket_ns, strip));
  // The mean over what was observed of a bucket. That of less than some samples' time would be noise: of the
  // newest bucket, which goes on, nothing is shown.
  const double least_ns = std::min(kMinSamplesPerBucket * sampling.period_ns, bucket_ns);
  for (size_t i = 0; i < count; ++i) {
    std::optional<double>& value = strip.values[i];
    if (!value.has_value() || shares[i] <= 0 || shares[i] >= 1) continue;
    const double observed_ns = shares[i] * bucket_ns;
    if (observed_ns < least_ns && i > 0 && shares[i - 1] >= 1 && (i + 1 == count || shares[i + 1] <= 0))
      value.reset();
    else
      *value *= bucket_ns / std::max(observed_ns, least_ns);
  }
  return strip;
}

// Rows of the scheduler's signals (metrics thread.*) of the selection's only process that touch the range.
SqlPart ThreadSignals(const model::Selection& selection, const TimeRange& range, std::string_view metric) {
  SqlPart rows{
      fmt::format("(SELECT start_ns, bucket_ns, values FROM signals WHERE metric LIKE '{}' AND process = ?",
                  metric),
      {selection.processes.front()}};
  rows += AndOfSignals(range);
  if (selection.tid.has_value()) rows += {" AND tid = ?", {int64_t{*selection.tid}}};
  rows.text += ")";
  return rows;
}

// When the states of threads were recorded. A recorded thread is in one of them at any moment, so that the
// rows of one thread cover its process's time.
Result<std::vector<TimeRange>> ReadRecordedStates(Store& store, const model::Selection& selection,
                                                  const TimeRange& range) {
  SqlPart sql{"SELECT min(start_ns) AS from_ns, max(start_ns + len(values) * bucket_ns) FROM ", {}};
  sql += ThreadSignals(selection, range, "thread.%");
  sql += {" GROUP BY start_ns // ? ORDER BY from_ns", {kNanosPerSecond}};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sql.text, sql.parameters));
  return ReadUnion(*rows);
}

// The selection's mean busy CPUs in equal buckets of the range, from the scheduler's signals.
Result<std::vector<double>> ReadRunning(Store& store, const model::Selection& selection,
                                        const TimeRange& range, double bucket_ns, size_t buckets) {
  SqlPart sql{
      "SELECT bucket, sum(value * share), sum(value * (1 - share)) FROM ("
      "SELECT value, bucket, least(1, ((bucket + 1) * width - at_ns) / bucket_ns) AS share FROM ("
      "SELECT *, floor(at_ns / width) AS bucket FROM ("
      "SELECT unnest(values)::DOUBLE AS value, bucket_ns, ?::DOUBLE AS width, start_ns::DOUBLE - ?::DOUBLE + "
      "(generate_subscripts(values, 1) - 1) * bucket_ns AS at_ns FROM ",
      {bucket_ns, static_cast<double>(range.from_ns)}};
  sql += ThreadSignals(selection, range, model::InfoOf(model::Metric::kThreadRunning).name);
  sql.text += "))) WHERE value > 0 GROUP BY bucket";
  std::vector<double> running(buckets);
  const auto add = [&](double bucket, double ns) {
    if (bucket >= 0 && bucket < static_cast<double>(buckets))
      running[static_cast<size_t>(bucket)] += ns / bucket_ns;
  };
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    add(row.Float64(0), row.Float64(1));
    add(row.Float64(0) + 1, row.Float64(2));
  }));
  return running;
}

// Replaces estimates by what the scheduler's signals say where they were recorded for the selected process.
Status UseRunningTime(Store& store, const model::Selection& selection, const CpuSampling& sampling,
                      Strip& strip) {
  const TimeRange range{strip.from_ns, strip.to_ns};
  const double length_ns = LengthNs(range);
  ASSIGN_OR_RETURN(const std::vector<TimeRange> recorded, ReadRecordedStates(store, selection, range));
  if (recorded.empty()) return {};
  const size_t buckets =
      BucketsNotBelow(static_cast<double>(model::kSignalBucketNs), length_ns, strip.values.size());
  const double bucket_ns = length_ns / static_cast<double>(buckets);
  ASSIGN_OR_RETURN(const std::vector<double> running,
                   ReadRunning(store, selection, range, bucket_ns, buckets));
  auto run = recorded.begin();
  for (size_t i = 0; i < strip.values.size(); ++i) {
    std::optional<double>& value = strip.values[i];
    const size_t bucket = i * buckets / strip.values.size();
    const double from_ns = static_cast<double>(range.from_ns) + static_cast<double>(bucket) * bucket_ns;
    while (run != recorded.end() && static_cast<double>(run->to_ns) < from_ns + bucket_ns) ++run;
    if (run == recorded.end()) return {};
    if (!value.has_value() || static_cast<double>(run->from_ns) > from_ns) continue;
    // The signals lack what was lost, and threads that have not left their CPU since.
    const double tolerance =
        kMinSamplesPerBucket * sampling.period_ns / bucket_ns + kSamplingError * running[bucket];
    if (*value - running[bucket] <= tolerance) value = running[bucket];
  }
  return {};
}

}  // namespace

Result<Strip> ReadCpuStrip(Store& store, const model::Selection& selection, int buckets) {
  TRY(CheckBuckets(buckets));
  ASSIGN_OR_RETURN(const CpuSampling sampling, ReadCpuSampling(store));
  ASSIGN_OR_RETURN(Strip strip, ReadSampledStrip(store, selection, sampling, buckets));
  // Only of one process: others may lack the signals.
  if (selection.processes.size() == 1 && selection.filter.empty() && !selection.while_gpu_idle &&
      strip.from_ns < strip.to_ns)
    TRY(UseRunningTime(store, selection, sampling, strip));
  if (sampling.none) std::ranges::fill(strip.values, std::nullopt);
  // A sample stands for a period of its CPU, which may begin in the bucket before.
  if (sampling.cpus > 0)
    for (std::optional<double>& value : strip.values)
      if (value.has_value()) value = std::min(*value, sampling.cpus);
  return strip;
}

}  // namespace gpusonde::store
