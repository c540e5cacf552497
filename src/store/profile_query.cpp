// SPDX-License-Identifier: Apache-2.0
#include "store/profile_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "model/drops.h"
#include "store/selection_sql.h"
#include "store/time_range.h"
#include "store/windows.h"

namespace gpusonde::store {
namespace {

// Which of the equal buckets of `range` some source was gathering in.
std::vector<bool> ObservedBuckets(const TimeRange& range, const std::vector<TimeRange>& observed,
                                  double bucket_ns, size_t buckets) {
  std::vector<bool> seen(buckets, false);
  for (const TimeRange& run : observed) {
    if (run.to_ns <= range.from_ns || run.from_ns >= range.to_ns) continue;
    const auto offset = [&](int64_t time_ns) {  // of a time in the range
      return static_cast<double>(static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(range.from_ns)) /
             bucket_ns;
    };
    const auto first =
        static_cast<size_t>(std::max(0.0, std::floor(offset(std::max(run.from_ns, range.from_ns)))));
    const auto last = static_cast<size_t>(std::ceil(offset(std::min(run.to_ns, range.to_ns))));
    for (size_t i = first; i < std::min(last, buckets); ++i) seen[i] = true;
  }
  return seen;
}

// A bucket of the CPU strip holds at least so many samples of a busy CPU: with fewer it would show when
// samples happened to be taken, not how busy CPUs were.
constexpr double kMinSamplesPerBucket = 4;

struct CpuSampling {
  double period_ns = 0;  // between samples of one CPU, the longest of any source; 0 when not known
  double cpus = 0;       // of all hosts; 0 when not known
};

Result<CpuSampling> ReadCpuSampling(Store& store) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(
          "SELECT coalesce(max(period_ns), 0), coalesce(sum(cpus), 0)::DOUBLE FROM ("
          "SELECT max(1e9 / sampling_hz) FILTER (sampling_hz > 0 AND isfinite(sampling_hz)) AS period_ns, "
          "greatest(max(cpus), 0) AS cpus FROM sources GROUP BY host)"));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any ? CpuSampling{rows->Float64(0), rows->Float64(1)} : CpuSampling{};
}

Overview::Drop DropOf(std::string_view reason, int64_t count) {
  const auto found = std::ranges::find(model::kDropReasons, reason, &model::DropInfo::name);
  if (found == model::kDropReasons.end())
    return {std::string(reason), "Lost for a reason that this version doesn't know.", true, count};
  return {std::string(reason), std::string(found->meaning), found->lost, count};
}

template <class T>
std::optional<T> Optional(const Rows& rows, size_t column, T value) {
  return rows.IsNull(column) ? std::nullopt : std::optional<T>(value);
}

}  // namespace

Result<std::vector<ProcessUse>> ReadProcesses(Store& store, const model::Selection& selection) {
  const SqlPart time = CpuTimeIn(store, selection, Detail::kThreads);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(
          fmt::format(
              "WITH used AS (SELECT process, tid, sum(weight_ns)::BIGINT AS cpu_ns FROM {} GROUP BY ALL) "
              "SELECT used.process, used.tid, cpu_ns, threads.name, pid, processes.name, command, "
              "processes.started_ns, processes.exited_ns FROM used LEFT JOIN processes USING (process) "
              "LEFT JOIN threads ON threads.process = used.process AND threads.tid = used.tid "
              "ORDER BY cpu_ns DESC, used.tid",
              time.text),
          time.parameters));
  std::vector<ProcessUse> uses;
  std::unordered_map<Id128, size_t> indices;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    const auto [at, is_new] = indices.try_emplace(rows->Id(0), uses.size());
    if (is_new)
      uses.push_back({.process = rows->Id(0),
                      .pid = static_cast<int32_t>(rows->Int64(4)),
                      .name = std::string(rows->Text(5)),
                      .command = std::string(rows->Text(6)),
                      .started_ns = rows->Int64(7),
                      .exited_ns = Optional(*rows, 8, rows->Int64(8))});
    ProcessUse& use = uses[at->second];
    use.threads.push_back({static_cast<int32_t>(rows->Int64(1)), std::string(rows->Text(3)), rows->Int64(2)});
    use.cpu_ns += use.threads.back().cpu_ns;
  }
  std::ranges::sort(uses, [](const ProcessUse& a, const ProcessUse& b) {
    return std::tuple(-a.cpu_ns, a.pid, a.process) < std::tuple(-b.cpu_ns, b.pid, b.process);
  });
  return uses;
}

Result<Strip> ReadCpuStrip(Store& store, const model::Selection& selection, int buckets) {
  if (buckets < 1)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} buckets; at least one is needed", buckets));
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  const auto count = static_cast<size_t>(buckets);
  Strip strip{range.from_ns, range.to_ns, std::vector<std::optional<double>>(count)};
  if (range.to_ns <= range.from_ns) return strip;
  // Unsigned: a hostile file may name any two moments.
  const uint64_t length_ns = static_cast<uint64_t>(range.to_ns) - static_cast<uint64_t>(range.from_ns);
  const double bucket_ns = static_cast<double>(length_ns) / buckets;

  ASSIGN_OR_RETURN(const CpuSampling sampling, ReadCpuSampling(store));
  if (const double finest_ns = kMinSamplesPerBucket * sampling.period_ns;
      bucket_ns < finest_ns && buckets > 1) {
    const auto coarse = static_cast<int>(std::max(1.0, static_cast<double>(length_ns) / finest_ns));
    ASSIGN_OR_RETURN(const Strip read, ReadCpuStrip(store, selection, coarse));
    for (size_t i = 0; i < count; ++i) strip.values[i] = read.values[i * read.values.size() / count];
    return strip;
  }

  ASSIGN_OR_RETURN(const std::vector<TimeRange> observed, ReadObserved(store));
  const std::vector<bool> seen = ObservedBuckets(range, observed, bucket_ns, count);
  for (size_t i = 0; i < count; ++i)
    if (seen[i]) strip.values[i] = 0;

  model::Selection bounded = selection;
  bounded.from_ns = range.from_ns;
  bounded.to_ns = range.to_ns;
  // Windows are spread over two buckets at most; in shorter buckets they would blur.
  const SqlPart time = bucket_ns < static_cast<double>(kFiveMinutes.length_ns) || !selection.filter.empty()
                           ? CpuSamplesIn(bounded)
                           : CpuTimeIn(store, bounded, Detail::kThreads);
  // By bucket where a row lies in one, else by window.
  std::vector<Parameter> parameters = {range.from_ns, bucket_ns};
  parameters.insert(parameters.end(), time.parameters.begin(), time.parameters.end());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(fmt::format("SELECT CASE WHEN length_ns = 0 THEN floor((start_ns - ?) / ?) END AS bucket, "
                              "CASE WHEN length_ns > 0 THEN start_ns END AS window_ns, any_value(length_ns), "
                              "sum(weight_ns)::BIGINT FROM {} GROUP BY bucket, window_ns",
                              time.text),
                  parameters));
  const auto add = [&](double bucket, double cpu_ns) {
    std::optional<double>& value = strip.values[std::min(static_cast<size_t>(bucket), count - 1)];
    value = value.value_or(0) + cpu_ns / bucket_ns;
  };
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    const auto cpu_ns = static_cast<double>(rows->Int64(3));
    if (!rows->IsNull(0)) {
      add(rows->Float64(0), cpu_ns);
      continue;
    }
    const double start = static_cast<double>(rows->Int64(1) - range.from_ns) / bucket_ns;
    const double next = std::floor(start) + 1;
    const double share = std::min(1.0, (next - start) / (static_cast<double>(rows->Int64(2)) / bucket_ns));
    add(start, share * cpu_ns);
    if (share < 1) add(next, (1 - share) * cpu_ns);
  }
  // A sample stands for a period of its CPU, which may begin in the bucket before.
  if (sampling.cpus > 0)
    for (std::optional<double>& value : strip.values)
      if (value.has_value()) value = std::min(*value, sampling.cpus);
  return strip;
}

Result<std::vector<Overview::SourceInfo>> ReadSources(Store& store) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query("SELECT source, kind, host, command, sampling_hz, cpus, started_ns, ended_ns "
                               "FROM sources ORDER BY started_ns, source"));
  std::vector<Overview::SourceInfo> sources;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return sources;
    sources.push_back({.source = rows->Id(0),
                       .kind = std::string(rows->Text(1)),
                       .host = std::string(rows->Text(2)),
                       .command = std::string(rows->Text(3)),
                       .sampling_hz = Optional(*rows, 4, rows->Float64(4)),
                       .cpus = static_cast<int32_t>(rows->Int64(5)),
                       .started_ns = rows->Int64(6),
                       .ended_ns = Optional(*rows, 7, rows->Int64(7))});
  }
}

Result<Overview> ReadOverview(Store& store) {
  Overview overview;
  ASSIGN_OR_RETURN(overview.sources, ReadSources(store));
  if (!overview.sources.empty()) {
    ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, {}));
    overview.from_ns = range.from_ns;
    overview.to_ns = range.to_ns;
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> counts,
      store.Query(
          "SELECT (SELECT count(*) FROM samples WHERE state = 'on_cpu'), "
          "(SELECT count(*) FROM raw.kernels) + (SELECT coalesce(sum(count), 0)::BIGINT FROM kernel_packs), "
          "(SELECT bool_or(simulated) FROM devices)"));
  ASSIGN_OR_RETURN(const bool any, counts->Next());
  if (any) {
    overview.samples = counts->Int64(0);
    overview.kernels = counts->Int64(1);
    overview.simulated = counts->Int64(2) != 0;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> drops,
                   store.Query("SELECT reason, sum(count)::BIGINT AS total FROM drops GROUP BY reason "
                               "ORDER BY total DESC, reason"));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, drops->Next());
    if (!more) return overview;
    overview.drops.push_back(DropOf(drops->Text(0), drops->Int64(1)));
  }
}

Result<bool> NamesFile(Store& store, const std::string& file) {
  const Parameter parameters[] = {file};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query("SELECT 1 FROM raw.functions WHERE file = ? LIMIT 1", parameters));
  return rows->Next();
}

}  // namespace gpusonde::store
