// SPDX-License-Identifier: Apache-2.0
#include "importers/sonde/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/ascii.h"
#include "base/demangle.h"
#include "store/each_row.h"

namespace gpusonde::importers::sonde {
namespace {

constexpr size_t kRowsBatch = 1024;

// The columns common to every kind of GPU work.
enum : size_t { kProcess, kStart, kEnd, kSession, kCorrelation, kDevice, kStream, kFirstOwn };

template <class Enum>
Enum Named(std::string_view name, Enum last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (Name(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  return Enum{};
}

// Correlation ids are unique within a session of the inject library: a program that replaces itself (exec)
// begins anew, as CUPTI does after it was finalized. So those of each session are moved by 2^24, within the
// 32 bits that are joined: more launches than a session of a governed program has, and what is further apart
// than 256 sessions isn't joined, as it is more than 60 s apart.
int64_t CorrelationIn(int64_t session, int64_t number) {
  if (session <= 1 || number < 0 || number > std::numeric_limits<uint32_t>::max())
    return CorrelationOf(number);
  return static_cast<uint32_t>(static_cast<uint64_t>(number) + (static_cast<uint64_t>(session - 1) << 24));
}

// A graph that was traced as a whole is a row of kernels (docs/import.md), without a shape.
bool IsWholeGraph(std::string_view name, const std::array<int64_t, 6>& extents) {
  if (!name.starts_with(kGraphPrefix) || extents != std::array<int64_t, 6>{}) return false;
  const std::string_view number = name.substr(kGraphPrefix.size());
  return !number.empty() && std::ranges::all_of(number, IsDigit);
}

}  // namespace

// Pids are reused, ids of processes are not: the index among all ids distinguishes them. Ranks are numbered
// in this order: those of imported traces by the ranks that their names have (convert/trace_rows.cpp), others
// as they started.
Result<Numbers> ReadNumbers(store::Store& store) {
  Numbers numbers;
  int64_t place = 0;
  int64_t ranks = 0;
  TRY(store::ForEachRow(
      store.Query("SELECT process, pid, try_cast(regexp_extract(name, '^rank ([0-9]+) [(]', 1) AS BIGINT) AS "
                  "rank FROM processes ORDER BY rank NULLS LAST, started_ns NULLS LAST, pid, process"),
      [&](const store::Rows& row) {
        numbers.processes[row.Id(0)] = place++ << 24 | PidOf(row.Int64(1));
        if (!row.IsNull(2) && ++ranks == 1) numbers.rank = row.Int64(2);
      }));
  if (ranks > 1) numbers.rank.reset();
  TRY(store::ForEachRow(store.Query("SELECT device, ordinal FROM devices"), [&](const store::Rows& row) {
    numbers.devices[row.Id(0)] = static_cast<int32_t>(row.Int64(1));
  }));
  return numbers;
}

Result<int64_t> CountSampledCalls(store::Store& store, std::string_view table, const store::SqlPart& also) {
  const std::string sql = fmt::format("SELECT count(*) FROM {} WHERE probability < 1{}", table, also.text);
  ASSIGN_OR_RETURN(const auto rows, store.Query(sql, also.parameters));
  ASSIGN_OR_RETURN(const bool counted, rows->Next());
  return counted ? rows->Int64(0) : 0;
}

Status RowReader::Read(const Shard& shard) {
  const TableQuery& table = kTables[shard.source];
  const auto first = static_cast<int64_t>(shard.first);
  const std::string sql = fmt::format("SELECT {} FROM recording0.{} WHERE rowid >= ? AND rowid < ? AND {}",
                                      table.columns, table.table, table.where);
  const store::Parameter range[] = {first, first + table.rows_per_shard};
  return ReadAll(table.kind, sql, range);
}

Status RowReader::ReadAll(TableKind kind, const std::string& sql,
                          std::span<const store::Parameter> parameters) {
  TRY(store::ForEachRow(store_.Query(sql, parameters), [&](const store::Rows& row) {
    Add(kind, row);
    if (batch_.size() >= kRowsBatch) batch_.Flush(sink_);
  }));
  batch_.Flush(sink_);
  return {};
}

uint32_t RowReader::KernelName(std::string_view name) {
  const auto [known, is_new] = kernel_names_.try_emplace(std::string(name), 0);
  if (is_new) known->second = sink_.Name(Demangle(known->first));
  return known->second;
}

bool RowReader::Fill(const store::Rows& row, GpuEvent& event) {
  if (row.IsNull(kStart) || row.IsNull(kEnd)) {  // lists of different lengths
    sink_.Drop(Dropped::kBadTime, 1);
    return false;
  }
  event.start_ns = row.Int64(kStart);
  event.end_ns = row.Int64(kEnd);
  if (!CheckTimes(event.start_ns, event.end_ns, sink_)) return false;
  const int64_t stream = row.Int64(kStream);
  if (stream < 0 || stream > std::numeric_limits<uint32_t>::max()) {
    sink_.Drop(Dropped::kWrongType, 1);
    return false;
  }
  const auto process = numbers_.processes.find(row.Id(kProcess));
  const auto device = numbers_.devices.find(row.Id(kDevice));
  event.process = process != numbers_.processes.end() ? process->second : 0;
  event.device = device != numbers_.devices.end() ? device->second : 0;
  event.correlation = CorrelationIn(row.Int64(kSession), row.Int64(kCorrelation));
  event.stream = static_cast<uint32_t>(stream);
  return true;
}

void RowReader::Add(TableKind kind, const store::Rows& row) {
  switch (kind) {
    case TableKind::kKernels: {
      GpuEvent event;
      if (!Fill(row, event)) return;
      event.name = KernelName(row.Text(kFirstOwn));
      std::array<int64_t, 6> extents{};
      for (size_t i = 0; i < extents.size(); ++i) extents[i] = row.Int64(kFirstOwn + 1 + i);
      event.shape = ShapeOf(extents);
      if (IsWholeGraph(row.Text(kFirstOwn), extents)) event.work = GpuWork::kGraph;
      batch_.gpu.push_back(event);
      return;
    }
    case TableKind::kMemcpys: {
      GpuEvent event{.work = GpuWork::kMemcpy};
      if (!Fill(row, event)) return;
      event.bytes = std::max<int64_t>(0, row.Int64(kFirstOwn));
      event.copy = Named(row.Text(kFirstOwn + 1), CopyKind::kHostToHost);
      event.source = Named(row.Text(kFirstOwn + 2), MemoryKind::kManaged);
      event.target = Named(row.Text(kFirstOwn + 3), MemoryKind::kManaged);
      batch_.gpu.push_back(event);
      return;
    }
    case TableKind::kMemsets: {
      GpuEvent event{.work = GpuWork::kMemset};
      if (!Fill(row, event)) return;
      event.bytes = std::max<int64_t>(0, row.Int64(kFirstOwn));
      batch_.gpu.push_back(event);
      return;
    }
    case TableKind::kApiCalls: {
      if (!row.Text(kCorrelation + 1).starts_with("cuda")) {
        ++batch_.others;
        return;
      }
      ApiCall call{.start_ns = row.Int64(kStart), .end_ns = row.Int64(kEnd)};
      if (!CheckTimes(call.start_ns, call.end_ns, sink_)) return;
      const auto process = numbers_.processes.find(row.Id(kProcess));
      call.process = process != numbers_.processes.end() ? process->second : 0;
      call.correlation = CorrelationIn(row.Int64(kSession), row.Int64(kCorrelation));
      call.name = sink_.Name(row.Text(kCorrelation + 2));
      call.thread = static_cast<uint32_t>(row.Int64(kCorrelation + 3));
      batch_.calls.push_back(call);
      return;
    }
    case TableKind::kRanges: {
      if (row.Text(kEnd + 1) == "operator") {
        ++batch_.others;
        return;
      }
      Range range{.start_ns = row.Int64(kStart), .end_ns = row.Int64(kEnd)};
      if (!CheckTimes(range.start_ns, range.end_ns, sink_)) return;
      const auto process = numbers_.processes.find(row.Id(kProcess));
      range.process = process != numbers_.processes.end() ? process->second : 0;
      range.label = sink_.Label(row.Text(kEnd + 2));
      batch_.ranges.push_back(range);
      return;
    }
    case TableKind::kSyncs:
      ++batch_.others;
      return;
  }
}

}  // namespace gpusonde::importers::sonde
