// SPDX-License-Identifier: Apache-2.0
#include "store/queries/profile_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/saturated.h"
#include "model/cgroup_owner.h"
#include "model/drops.h"
#include "store/each_row.h"
#include "store/queries/container_names.h"
#include "store/queries/gpu_work.h"
#include "store/queries/selection_sql.h"
#include "store/sql/saturated_sum.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

Overview::Drop DropOf(std::string_view reason, int64_t count) {
  const auto found = std::ranges::find(model::kDropReasons, reason, &model::DropInfo::name);
  if (found == model::kDropReasons.end())
    return {std::string(reason), "Lost for a reason that this version doesn't know.", true, count};
  return {std::string(reason), std::string(found->meaning), found->lost, count};
}

// A process from the columns pid, name, command, started_ns, exited_ns and cgroup, from this one on.
ProcessUse ProcessFrom(const Rows& row, const Id128& process, size_t first,
                       const ContainerNames& containers) {
  return {.process = process,
          .pid = static_cast<int32_t>(row.Int64(first)),
          .name = std::string(row.Text(first + 1)),
          .command = std::string(row.Text(first + 2)),
          .container = containers.ContainerOf(model::OwnerOfCgroup(row.Text(first + 5))),
          .started_ns = row.Int64(first + 3),
          .exited_ns = OptionalInt64(row, first + 4)};
}

// Adds those that ran GPU work and aren't there yet: of an imported trace none was sampled.
Status AddGpuProcesses(Store& store, const model::Selection& selection, const ContainerNames& containers,
                       std::vector<ProcessUse>& uses) {
  ASSIGN_OR_RETURN(const TimeRange range, WorkRange(store, selection));
  if (range.from_ns >= range.to_ns) return {};
  std::unordered_set<Id128> known;
  for (const ProcessUse& use : uses) known.insert(use.process);
  SqlPart sql{
      "SELECT DISTINCT process, pid, processes.name, command, processes.started_ns, processes.exited_ns, "
      "cgroup FROM ",
      {}};
  sql += WorkOwners(store, selection, range).InBrackets();
  sql.text += " AS owners LEFT JOIN processes USING (process)";
  return ForEachRow(store, sql, [&](const Rows& row) {
    if (known.insert(row.Id(0)).second) uses.push_back(ProcessFrom(row, row.Id(0), 1, containers));
  });
}

}  // namespace

Result<std::vector<ProcessUse>> ReadProcesses(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const CpuTime time, CpuTimeIn(store, selection, Detail::kThreads));
  ASSIGN_OR_RETURN(const ContainerNames containers, ContainerNames::Read(store));
  std::vector<ProcessUse> uses;
  std::unordered_map<Id128, size_t> indices;
  std::map<std::pair<size_t, int32_t>, ThreadUse> threads;  // by index of the process, and tid
  for (const SqlPart& part : time.parts) {
    const SqlPart sql{
        fmt::format("WITH used AS (SELECT process, tid, {} AS cpu_ns FROM {} GROUP BY ALL) "
                    "SELECT used.process, used.tid, cpu_ns, threads.name, pid, processes.name, command, "
                    "processes.started_ns, processes.exited_ns, cgroup FROM used "
                    "LEFT JOIN processes USING (process) "
                    "LEFT JOIN threads ON threads.process = used.process AND threads.tid = used.tid",
                    SaturatedSum("weight_ns"), part.text),
        part.parameters};
    TRY(ForEachRow(store, sql, [&](const Rows& row) {
      const auto [at, is_new] = indices.try_emplace(row.Id(0), uses.size());
      if (is_new) uses.push_back(ProcessFrom(row, row.Id(0), 4, containers));
      // A thread has a row in each part in which it has some time.
      ThreadUse& thread = threads[{at->second, static_cast<int32_t>(row.Int64(1))}];
      thread.name = std::string(row.Text(3));
      thread.cpu_ns = AddSaturated(thread.cpu_ns, std::max<int64_t>(row.Int64(2), 0));
    }));
  }
  for (auto& [key, thread] : threads) {
    ProcessUse& use = uses[key.first];
    use.cpu_ns = AddSaturated(use.cpu_ns, thread.cpu_ns);
    thread.tid = key.second;
    use.threads.push_back(std::move(thread));
  }
  for (ProcessUse& use : uses)
    std::ranges::sort(use.threads, {},
                      [](const ThreadUse& thread) { return std::tuple(-thread.cpu_ns, thread.tid); });
  if (!selection.while_gpu_idle) TRY(AddGpuProcesses(store, selection, containers, uses));
  std::ranges::sort(uses, [](const ProcessUse& a, const ProcessUse& b) {
    return std::tuple(-a.cpu_ns, a.pid, a.process) < std::tuple(-b.cpu_ns, b.pid, b.process);
  });
  return uses;
}

Status CheckBuckets(int buckets) {
  if (buckets >= 1) return {};
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} buckets; at least one is needed", buckets));
}

Result<std::vector<Overview::SourceInfo>> ReadSources(Store& store) {
  const SqlPart sql{
      "SELECT source, kind, host, command, sampling_hz, cpus, started_ns, ended_ns "
      "FROM sources ORDER BY started_ns, source",
      {}};
  std::vector<Overview::SourceInfo> sources;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    sources.push_back({.source = row.Id(0),
                       .kind = std::string(row.Text(1)),
                       .host = std::string(row.Text(2)),
                       .command = std::string(row.Text(3)),
                       .sampling_hz = OptionalFloat64(row, 4),
                       .cpus = static_cast<int32_t>(row.Int64(5)),
                       .started_ns = row.Int64(6),
                       .ended_ns = OptionalInt64(row, 7)});
  }));
  return sources;
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
      store.Query(fmt::format("SELECT (SELECT count(*) FROM samples WHERE state = 'on_cpu'), "
                              "(SELECT count(*) FROM raw.kernels), (SELECT {} FROM kernel_packs), "
                              "(SELECT bool_or(simulated) FROM devices)",
                              SaturatedSum("count"))));
  ASSIGN_OR_RETURN(const bool any, counts->Next());
  if (any) {
    overview.samples = counts->Int64(0);
    overview.kernels = AddSaturated(counts->Int64(1), counts->Int64(2));
    overview.simulated = counts->Int64(3) != 0;
  }
  const SqlPart drops{
      fmt::format("SELECT reason, {} AS total FROM drops GROUP BY reason ORDER BY total DESC, reason",
                  SaturatedSum("count")),
      {}};
  TRY(ForEachRow(store, drops,
                 [&](const Rows& row) { overview.drops.push_back(DropOf(row.Text(0), row.Int64(1))); }));
  return overview;
}

Result<bool> HasCpuSamples(Store& store) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query("SELECT 1 FROM raw.samples WHERE state = 'on_cpu' LIMIT 1"));
  return rows->Next();
}

Result<bool> NamesFile(Store& store, const std::string& file) {
  const Parameter parameters[] = {file};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query("SELECT 1 FROM raw.functions WHERE file = ? LIMIT 1", parameters));
  return rows->Next();
}

}  // namespace gpusonde::store
