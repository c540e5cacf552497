// SPDX-License-Identifier: Apache-2.0
#include "importers/nsys/nsys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "importers/nsys/row_reader.h"
#include "importers/nsys/schema.h"

namespace gpusonde::importers::nsys {
namespace {

// One whole number from a table of few rows, 0 without it.
Result<int64_t> ReadFirst(const sqlite::Database& database, std::string_view table_name,
                          std::string_view column) {
  ASSIGN_OR_RETURN(const std::optional<sqlite::Table> table, database.FindTable(table_name));
  if (!table.has_value() || table->parts() == 0) return 0;
  const std::optional<size_t> index = table->Find(column);
  if (!index.has_value()) return 0;
  ASSIGN_OR_RETURN(const auto reader, table->Read(std::array{*index}));
  TRY(reader->Seek(0));
  sqlite::Row row;
  ASSIGN_OR_RETURN(const bool found, reader->Next(row));
  return found && row.cells[0].is_integer() ? row.cells[0].integer : 0;
}

class NsysTrace final : public Trace {
 public:
  static Result<std::unique_ptr<Trace>> Open(std::unique_ptr<sqlite::Database> database,
                                             const OpenOptions& options) {
    std::unique_ptr<NsysTrace> trace(new NsysTrace(std::move(database)));
    trace->info_.truncated = trace->database_->truncated();
    ASSIGN_OR_RETURN(trace->info_.epoch_offset_ns,
                     ReadFirst(*trace->database_, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs"));
    ASSIGN_OR_RETURN(trace->strings_, trace->database_->FindTable("StringIds"));
    // Strings are looked up by rowid; a table that keeps its ids elsewhere is no export of Nsight's.
    if (trace->strings_.has_value()) {
      const std::optional<size_t> id = trace->strings_->Find("id");
      if (!id.has_value() || !trace->strings_->columns()[*id].is_rowid) trace->strings_.reset();
    }
    const std::span<const TableKind> kinds = options.kernels_only ? std::span(&kKernelTimes, 1) : kTables;
    for (const TableKind& kind : kinds) {
      ASSIGN_OR_RETURN(std::optional<sqlite::Table> table, trace->database_->FindTable(kind.table));
      if (table.has_value()) trace->tables_.push_back({kind, std::move(*table)});
    }
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
    return std::make_unique<RowReader>(tables_, strings_, sink);
  }

 private:
  explicit NsysTrace(std::unique_ptr<sqlite::Database> database) : database_(std::move(database)) {}

  std::unique_ptr<sqlite::Database> database_;
  TraceInfo info_{.format = TraceFormat::kNsysSqlite};
  std::optional<sqlite::Table> strings_;
  std::vector<OpenTable> tables_;
  size_t table_ = 0;
  size_t part_ = 0;
  uint64_t shards_ = 0;
};

}  // namespace

bool IsNsys(std::span<const std::string> table_names) {
  const auto has = [table_names](std::string_view name) {
    return std::ranges::find(table_names, name) != table_names.end();
  };
  if (!has("StringIds")) return false;
  return std::ranges::any_of(kTables, [&has](const TableKind& kind) { return has(kind.table); }) ||
         has("TARGET_INFO_SESSION_START_TIME") || has("META_DATA_EXPORT") || has("EXPORT_META_DATA");
}

Result<std::unique_ptr<Trace>> OpenNsys(std::unique_ptr<sqlite::Database> database, const std::string& path,
                                        const OpenOptions& options) {
  auto trace = NsysTrace::Open(std::move(database), options);
  if (!trace.has_value()) return Fail(std::move(trace).error().With(path + ": Nsight Systems export"));
  return trace;
}

}  // namespace gpusonde::importers::nsys
