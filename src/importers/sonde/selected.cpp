// SPDX-License-Identifier: Apache-2.0
#include "importers/sonde/selected.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "importers/sonde/row_reader.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::importers::sonde {
namespace {

// Rows of a slice: bounds what the database holds at once.
constexpr int64_t kSelectedSlice = 250'000;

// The names of the columns of kernels, as kTables lists them; those of packs are expressions there.
constexpr std::string_view kKernelColumnNames =
    "process, start_ns, end_ns, session, correlation, device, stream, name, grid_x, grid_y, grid_z, block_x, "
    "block_y, block_z";

bool IsGpuWork(TableKind kind) {
  return kind == TableKind::kKernels || kind == TableKind::kMemcpys || kind == TableKind::kMemsets;
}

// The rows of a table that start in the slice.
store::SqlPart SelectedRows(const TableQuery& table, const model::Selection& selection,
                            const TimeRange& slice) {
  store::SqlPart in_time{"start_ns >= ? AND start_ns < ?", {slice.from_ns, slice.to_ns}};
  if (table.table == "kernel_packs") {
    store::SqlPart rows{
        fmt::format("SELECT * FROM (SELECT {} FROM kernel_packs WHERE {} AND ", table.columns, table.where),
        {}};
    rows += store::PacksIn(selection, slice, store::WorkIn::kStartsIn);
    rows.text += fmt::format(") AS unpacked({}) WHERE ", kKernelColumnNames);
    rows += in_time;
    return rows;
  }
  // The view "kernels" has those of packs as well.
  store::SqlPart rows{fmt::format("SELECT {} FROM {}{} WHERE {} AND ", table.columns,
                                  table.table == "kernels" ? "raw." : "", table.table, table.where),
                      {}};
  rows += in_time;
  rows += store::AndOfProcesses(selection);
  if (!IsGpuWork(table.kind)) return rows;
  if (selection.device.has_value()) rows += {" AND device = ?", {*selection.device}};
  if (selection.device.has_value() && selection.stream.has_value())
    rows += {" AND stream = ?", {*selection.stream}};
  return rows;
}

class SelectedReader final : public ShardReader {
 public:
  SelectedReader(store::Store& store, const Numbers& numbers, const model::Selection& selection,
                 const std::vector<TimeRange>& slices, EventSink& sink)
      : selection_(selection), slices_(slices), rows_(store, numbers, sink) {}

  // A shard's `source` is an index of kTables and `first` one of the slices.
  Status Read(const Shard& shard) override {
    const TableQuery& table = kTables[shard.source];
    const store::SqlPart sql = SelectedRows(table, selection_, slices_[shard.first]);
    return rows_.ReadAll(table.kind, sql.text, sql.parameters);
  }

 private:
  const model::Selection& selection_;
  const std::vector<TimeRange>& slices_;
  RowReader rows_;
};

class SelectedTrace final : public Trace {
 public:
  SelectedTrace(store::Store& store, model::Selection selection, Numbers numbers,
                std::vector<TimeRange> slices, int64_t sampled_calls)
      : info_{.format = TraceFormat::kSonde, .sampled_calls = sampled_calls},
        store_(store),
        selection_(std::move(selection)),
        numbers_(std::move(numbers)),
        slices_(std::move(slices)) {}

  const TraceInfo& info() const override { return info_; }

  Result<bool> Next(Shard& shard) override {
    if (shards_ == kTables.size() * slices_.size()) return false;
    shard.index = shards_;
    shard.source = shards_ % kTables.size();
    shard.first = shards_ / kTables.size();
    ++shards_;
    return true;
  }

  Result<std::unique_ptr<ShardReader>> MakeReader(EventSink& sink) const override {
    return std::make_unique<SelectedReader>(store_, numbers_, selection_, slices_, sink);
  }

 private:
  TraceInfo info_;
  store::Store& store_;
  model::Selection selection_;
  Numbers numbers_;
  std::vector<TimeRange> slices_;
  uint64_t shards_ = 0;
};

}  // namespace

Result<std::unique_ptr<Trace>> OpenSelected(store::Store& store, const model::Selection& selection,
                                            int64_t max_work) {
  ASSIGN_OR_RETURN(const TimeRange range, store::ReadTimeRange(store, selection));
  store::SqlPart counting{"SELECT coalesce(sum(count), 0)::BIGINT FROM ", {}};
  counting += store::GpuWorkSpans(selection, range, store::WorkIn::kStartsIn);
  ASSIGN_OR_RETURN(const auto counted, store.Query(counting.text, counting.parameters));
  ASSIGN_OR_RETURN(const bool any, counted->Next());
  if (any && counted->Int64(0) > max_work)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("this time has {} kernels, copies and sets; at most {} are read at once: select a "
                    "shorter time",
                    counted->Int64(0), max_work));
  ASSIGN_OR_RETURN(Numbers numbers, ReadNumbers(store));
  ASSIGN_OR_RETURN(std::vector<TimeRange> slices,
                   store::ReadSlices(store::Asking(store), selection, range, kSelectedSlice));
  store::SqlPart selected{" AND start_ns >= ? AND start_ns < ?", {range.from_ns, range.to_ns}};
  selected += store::AndOfProcesses(selection);
  ASSIGN_OR_RETURN(const int64_t sampled_calls, CountSampledCalls(store, "api_calls", selected));
  return std::make_unique<SelectedTrace>(store, selection, std::move(numbers), std::move(slices),
                                         sampled_calls);
}

}  // namespace gpusonde::importers::sonde
