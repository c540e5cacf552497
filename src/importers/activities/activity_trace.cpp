// SPDX-License-Identifier: Apache-2.0
#include "importers/activities/activity_trace.h"

#include <optional>
#include <utility>
#include <vector>

#include "importers/activities/nccl_payloads.h"
#include "importers/activities/row_reader.h"

namespace gpusonde::importers::activities {
namespace {

bool IsGpuWork(Kind kind) {
  return kind == Kind::kKernel || kind == Kind::kMemcpy || kind == Kind::kMemset || kind == Kind::kSync ||
         kind == Kind::kGraph;
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
    ASSIGN_OR_RETURN(trace->strings_, trace->database_->FindTable(layout.strings));
    // Strings are looked up by rowid; a table with its ids elsewhere was not written by the profiler.
    if (trace->strings_.has_value()) {
      const std::optional<size_t> id = trace->strings_->Find(layout.string_id);
      if (!id.has_value() || !trace->strings_->columns()[*id].is_rowid) trace->strings_.reset();
    }
    if (!options.detail && !options.kernels_only) {
      ASSIGN_OR_RETURN(trace->nccl_, NcclPayloads::Read(*trace->database_));
    }
    for (const TableKind& kind : options.kernels_only ? layout.kernel_times : layout.tables) {
      if (kind.only_in_detail && !options.detail) continue;
      if (options.gpu_only && !IsGpuWork(kind.kind)) continue;
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
    return std::make_unique<RowReader>(layout_, tables_, strings_, nccl_, detail_, sink);
  }

 private:
  ActivityTrace(std::unique_ptr<sqlite::Database> database, const Layout& layout, TraceInfo info, bool detail)
      : layout_(layout), database_(std::move(database)), info_(std::move(info)), detail_(detail) {}

  const Layout& layout_;
  std::unique_ptr<sqlite::Database> database_;
  TraceInfo info_;
  bool detail_;
  std::optional<sqlite::Table> strings_;
  NcclPayloads nccl_;
  std::vector<OpenTable> tables_;
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
