// SPDX-License-Identifier: Apache-2.0
#include "store/tracks/launched_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/demangle.h"
#include "model/profile.h"
#include "store/duckdb/schema.h"
#include "store/each_row.h"
#include "store/queries/profile_assembler.h"
#include "store/rollups/work_sums.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {
namespace {

// Columns of a kernel, in the order of ReadKernel; `correlation` and `graph_node` of one in a pack are
// elements of lists.
std::string KernelColumns(std::string_view correlation, std::string_view times, std::string_view graph_node) {
  return fmt::format(
      "session, {} AS correlation, context, {}, {} AS graph_node, name, grid_x, grid_y, grid_z, "
      "block_x, block_y, block_z, registers, coalesce(static_shared_bytes::HUGEINT + "
      "dynamic_shared_bytes, static_shared_bytes, dynamic_shared_bytes) AS shared_bytes",
      correlation, times, graph_node);
}

SqlPart KernelsAt(const WorkPlace& place, const model::Selection& selection) {
  SqlPart kernels{
      fmt::format("SELECT * FROM (SELECT {} FROM raw.kernels WHERE process = ? AND device = ? AND "
                  "stream = ? AND start_ns = ? UNION ALL SELECT * FROM (SELECT {} FROM kernel_packs "
                  "WHERE {} AND ",
                  KernelColumns("correlation", "start_ns, end_ns", "graph_node"),
                  KernelColumns("unnest(correlations)", duckdb::kPackedTimes, "unnest(graph_nodes)"),
                  duckdb::kSoundPack),
      {place.process, place.device, place.stream, place.start_ns}};
  kernels += PacksIn(selection, {place.start_ns, place.start_ns + 1}, WorkIn::kStartsIn);
  kernels +=
      {") WHERE start_ns = ?) WHERE end_ns >= start_ns ORDER BY end_ns DESC LIMIT 1", {place.start_ns}};
  return kernels;
}

// Columns that all kinds of work begin with.
model::GpuWork ReadPlaced(const Rows& rows, const WorkPlace& place) {
  return {.process = place.process,
          .device = place.device,
          .session = static_cast<int32_t>(rows.Int64(0)),
          .correlation = rows.IsNull(1) ? -1 : rows.Int64(1),
          .context = rows.Int64(2),
          .stream = place.stream,
          .start_ns = rows.Int64(3),
          .end_ns = rows.Int64(4),
          .graph_node = OptionalInt64(rows, 5),
          .name = "",
          .copy = "",
          .source_memory = "",
          .target_memory = ""};
}

Result<std::optional<model::GpuWork>> FindKernel(Store& store, const WorkPlace& place) {
  model::Selection selection;
  selection.processes = {place.process};
  selection.device = place.device;
  selection.stream = place.stream;
  const SqlPart sql = KernelsAt(place, selection);
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sql.text, sql.parameters));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  if (!any) return std::nullopt;
  model::GpuWork work = ReadPlaced(*rows, place);
  work.kind = model::GpuWork::Kind::kKernel;
  work.name = Demangle(std::string(rows->Text(6)));
  for (size_t i = 0; i < 3; ++i) {
    work.grid[i] = rows->Int64(7 + i);
    work.block[i] = rows->Int64(10 + i);
  }
  work.registers = OptionalInt64(*rows, 13);
  work.shared_bytes = OptionalInt64(*rows, 14);
  return work;
}

Result<std::optional<model::GpuWork>> FindCopy(Store& store, const WorkPlace& place) {
  constexpr std::string_view kPlaced = "session, correlation, context, start_ns, end_ns, graph_node, bytes";
  constexpr std::string_view kWhere =
      "process = ? AND device = ? AND stream = ? AND start_ns = ? AND end_ns >= start_ns";
  SqlPart sql;
  for (const auto& [columns, table] :
       {std::pair("kind, source_memory, target_memory", "memcpys"), {"'', '', ''", "memsets"}}) {
    sql += {fmt::format("{}SELECT {}, {}, '{}' FROM {} WHERE {}", sql.text.empty() ? "" : " UNION ALL ",
                        kPlaced, columns, table, table, kWhere),
            {place.process, place.device, place.stream, place.start_ns}};
  }
  sql.text += " ORDER BY end_ns DESC LIMIT 1";
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sql.text, sql.parameters));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  if (!any) return std::nullopt;
  model::GpuWork work = ReadPlaced(*rows, place);
  work.kind = rows->Text(10) == "memcpys" ? model::GpuWork::Kind::kMemcpy : model::GpuWork::Kind::kMemset;
  work.bytes = rows->Int64(6);
  work.copy = rows->Text(7);
  work.source_memory = rows->Text(8);
  work.target_memory = rows->Text(9);
  return work;
}

Result<std::vector<std::string>> ReadStack(Store& store, const Id128& process, int32_t tid,
                                           const Id128& stack) {
  ASSIGN_OR_RETURN(
      ProfileAssembler assembler,
      ProfileAssembler::Read(store,
                             std::vector<ProfileAssembler::Used>{
                                 {.process = process, .tid = tid, .stack = stack, .state = "", .count = 1}}));
  const auto index = static_cast<size_t>(assembler.StackIndex(stack));
  const model::Profile& profile = assembler.profile();
  std::vector<std::string> frames;
  for (const int32_t location : profile.stacks[index]) {
    const size_t lines = location < 0 ? 0 : profile.locations[static_cast<size_t>(location)].lines.size();
    for (size_t line = 0; line < std::max<size_t>(lines, 1); ++line)
      frames.push_back(model::FrameName(profile, location, line));
  }
  std::ranges::reverse(frames);
  return frames;
}

Result<std::optional<Launch>> FindLaunch(Store& store, const model::GpuWork& work) {
  if (work.correlation < 0) return std::nullopt;
  const TimeRange reach = LaunchReach({work.start_ns, work.start_ns + 1});
  const SqlPart sql{
      "SELECT name, tid, start_ns, end_ns, stack FROM api_calls WHERE process = ? AND session "
      "= ? AND correlation = ? AND start_ns >= ? AND start_ns < ? AND end_ns >= start_ns "
      "ORDER BY start_ns, end_ns DESC",
      {work.process, int64_t{work.session}, work.correlation, reach.from_ns, reach.to_ns}};
  std::optional<Launch> launch;
  Id128 stack;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    const int64_t start_ns = row.Int64(2);
    // Ids repeat: of several launches it is the last one before the work, else the first, as in WorkSummer.
    if (!MayHaveStarted(start_ns, work.start_ns) || (launch.has_value() && start_ns > work.start_ns)) return;
    // A launch of the driver lies within that of the runtime, with the same correlation: the outer one is the
    // program's.
    if (launch.has_value() && launch->tid == row.Int64(1) && row.Int64(3) <= launch->end_ns) return;
    launch = Launch{.name = std::string(row.Text(0)),
                    .tid = static_cast<int32_t>(row.Int64(1)),
                    .thread = "",
                    .start_ns = start_ns,
                    .end_ns = row.Int64(3),
                    .stack = {}};
    stack = row.IsNull(4) ? Id128{} : row.Id(4);
  }));
  if (!launch.has_value()) return std::nullopt;
  if (stack != Id128{}) {
    ASSIGN_OR_RETURN(launch->stack, ReadStack(store, work.process, launch->tid, stack));
  }
  const std::vector<Parameter> of_thread = {work.process, int64_t{launch->tid}};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> names,
                   store.Query("SELECT name FROM threads WHERE process = ? AND tid = ?", of_thread));
  ASSIGN_OR_RETURN(const bool named, names->Next());
  if (named) launch->thread = names->Text(0);
  return launch;
}

}  // namespace

Result<std::optional<LaunchedWork>> ReadLaunchedWork(Store& store, const WorkPlace& place) {
  ASSIGN_OR_RETURN(std::optional<model::GpuWork> work, FindKernel(store, place));
  if (!work.has_value()) {
    ASSIGN_OR_RETURN(work, FindCopy(store, place));
  }
  if (!work.has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(std::optional<Launch> launch, FindLaunch(store, *work));
  return LaunchedWork{std::move(*work), std::move(launch)};
}

}  // namespace gpusonde::store
