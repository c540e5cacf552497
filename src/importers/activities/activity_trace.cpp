// SPDX-License-Identifier: Apache-2.0
#include "importers/activities/activity_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "importers/activities/nccl_payloads.h"
#include "importers/activities/row_reader.h"
#include "importers/activities/strings.h"

namespace gpusonde::importers::activities {
namespace {

bool IsGpuWork(Kind kind) {
  return kind == Kind::kKernel || kind == Kind::kMemcpy || kind == Kind::kMemset || kind == Kind::kSync ||
         kind == Kind::kGraph;
}

// Whether the rows of a table of GPU work don't have the process that they should have: no column, or nothing
// in it.
Result<bool> LacksProcesses(const OpenTable& open) {
  const std::string_view name = open.kind.columns[kGlobalPid];
  if (!IsGpuWork(open.kind.kind) || open.kind.kind == Kind::kSync || name.empty()) return false;
  const std::optional<size_t> column = open.table.Find(name);
  if (!column.has_value()) return true;
  if (open.table.parts() == 0) return false;
  ASSIGN_OR_RETURN(const auto reader, open.table.Read(std::array{*column}));
  TRY(reader->Seek(0));
  sqlite::Row first;
  ASSIGN_OR_RETURN(const bool any, reader->Next(first));
  return any && !first.cells[0].is_integer();
}

// The processes whose threads have rows in the tables of a kind.
Result<std::set<int64_t>> ReadProcesses(const sqlite::Database& database, const Layout& layout, Kind kind,
                                        size_t thread_column) {
  std::set<int64_t> processes;
  for (const TableKind& wanted : layout.tables) {
    if (wanted.kind != kind) continue;
    ASSIGN_OR_RETURN(const std::optional<sqlite::Table> table, database.FindTable(wanted.table));
    if (!table.has_value()) continue;
    const std::optional<size_t> thread = table->Find(wanted.columns[thread_column]);
    if (!thread.has_value()) continue;
    ASSIGN_OR_RETURN(const auto reader, table->Read(std::array{*thread}));
    sqlite::IntegerRows rows;
    for (size_t part = 0; part < table->parts(); ++part) {
      TRY(reader->Seek(part));
      while (true) {
        ASSIGN_OR_RETURN(const bool more, reader->NextIntegers(rows));
        if (!more) break;
        for (size_t row = 0; row < rows.count; ++row)
          if ((rows.integers[row] & 1) != 0) processes.insert(ProcessOf(rows.values[row * rows.stride]));
      }
    }
  }
  return processes;
}

// Those that may have launched the GPU work: all with calls, or without recorded calls all with ranges.
Result<std::set<int64_t>> ReadLaunchers(const sqlite::Database& database, const Layout& layout) {
  ASSIGN_OR_RETURN(std::set<int64_t> callers, ReadProcesses(database, layout, Kind::kRuntime, kGlobalTid));
  if (!callers.empty()) return callers;
  return ReadProcesses(database, layout, Kind::kNvtx, kRangeThread);
}

class ActivityTrace final : public Trace {
 public:
  static Result<std::unique_ptr<Trace>> Open(std::unique_ptr<sqlite::Database> database, const Layout& layout,
                                             TraceInfo info, const OpenOptions& options) {
    info.format = layout.format;
    info.separate_gpu_clock = layout.raw_times;
    info.truncated = database->truncated();
    std::unique_ptr<ActivityTrace> trace(
        new ActivityTrace(std::move(database), layout, std::move(info), options.detail));
    ASSIGN_OR_RETURN(trace->strings_, Strings::Open(*trace->database_, layout));
    if (!options.detail && !options.kernels_only) {
      ASSIGN_OR_RETURN(trace->nccl_, NcclPayloads::Read(*trace->database_));
    }
    for (const TableKind& kind : options.kernels_only ? layout.kernel_times : layout.tables) {
      if (kind.only_in_detail && !options.detail) continue;
      if (options.gpu_only && !IsGpuWork(kind.kind)) continue;
      ASSIGN_OR_RETURN(std::optional<sqlite::Table> table, trace->database_->FindTable(kind.table));
      if (table.has_value()) {
        trace->tables_.push_back({kind, std::move(*table)});
        continue;
      }
      ASSIGN_OR_RETURN(const bool is_view, trace->database_->HasView(kind.table));
      if (is_view)
        return Fail(ErrorCode::kUnsupported,
                    fmt::format("{0} is a view; only tables are read: CREATE TABLE … AS SELECT * FROM {0} "
                                "makes one",
                                kind.table));
    }
    TRY(trace->FindLauncher(options.partial));
    return trace;
  }

  const TraceInfo& info() const override { return info_; }

  Result<bool> Next(Shard& shard) override {
    while (table_ < tables_.size() && part_ == tables_[table_].table.parts()) {
      ++table_;
      part_ = 0;
    }
    if (table_ == tables_.size()) return false;
    shard.index = shards_++;
    shard.source = table_;
    shard.first = part_++;
    return true;
  }

  Result<std::unique_ptr<ShardReader>> MakeReader(EventSink& sink) const override {
    return std::make_unique<RowReader>(layout_, tables_, strings_, nccl_, only_launcher_, detail_, sink);
  }

 private:
  ActivityTrace(std::unique_ptr<sqlite::Database> database, const Layout& layout, TraceInfo info, bool detail)
      : layout_(layout), database_(std::move(database)), info_(std::move(info)), detail_(detail) {}

  // Of GPU work that doesn't say whose it is.
  Status FindLauncher(bool partial) {
    // Damaged pages are reported where they are read.
    if (std::ranges::none_of(tables_,
                             [](const OpenTable& open) { return LacksProcesses(open).value_or(false); }))
      return {};
    auto launchers = ReadLaunchers(*database_, layout_);
    if (!launchers.has_value() && partial) return {};
    if (!launchers.has_value()) return Fail(std::move(launchers).error());
    if (launchers->size() == 1) only_launcher_ = *launchers->begin();
    if (launchers->size() > 1) info_.possible_launchers = static_cast<int64_t>(launchers->size());
    return {};
  }

  const Layout& layout_;
  std::unique_ptr<sqlite::Database> database_;
  TraceInfo info_;
  bool detail_;
  Strings strings_;
  NcclPayloads nccl_;
  std::vector<OpenTable> tables_;
  int64_t only_launcher_ = 0;
  size_t table_ = 0;
  size_t part_ = 0;
  uint64_t shards_ = 0;
};

}  // namespace

Result<std::unique_ptr<Trace>> OpenActivities(std::unique_ptr<sqlite::Database> database,
                                              const std::string& path, const Layout& layout, TraceInfo info,
                                              const OpenOptions& options) {
  auto trace = ActivityTrace::Open(std::move(database), layout, std::move(info), options);
  if (!trace.has_value()) return Fail(std::move(trace).error().With(path + ": " + std::string(layout.what)));
  return trace;
}

}  // namespace gpusonde::importers::activities
