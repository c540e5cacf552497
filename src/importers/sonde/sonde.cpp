// SPDX-License-Identifier: Apache-2.0
#include "importers/sonde/sonde.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "importers/sonde/row_reader.h"
#include "store/recordings/recording.h"

namespace gpusonde::importers::sonde {
namespace {

class SondeTrace final : public Trace {
 public:
  static Result<std::unique_ptr<Trace>> Open(const std::string& path) {
    std::unique_ptr<SondeTrace> trace(new SondeTrace);
    ASSIGN_OR_RETURN(trace->store_, store::OpenRecordings({path}));
    ASSIGN_OR_RETURN(trace->numbers_, ReadNumbers(*trace->store_));
    trace->info_.rank = trace->numbers_.rank;
    for (const TableQuery& table : kTables) {
      ASSIGN_OR_RETURN(const int64_t rows, trace->CountRows(table.table));
      trace->rows_.push_back(rows);
      if (table.kind == TableKind::kApiCalls && rows > 0) {
        ASSIGN_OR_RETURN(trace->info_.sampled_calls,
                         CountSampledCalls(*trace->store_, "recording0.api_calls", {}));
      }
    }
    return trace;
  }

  const TraceInfo& info() const override { return info_; }

  Result<bool> Next(Shard& shard) override {
    while (table_ < rows_.size() && row_ >= rows_[table_]) {
      ++table_;
      row_ = 0;
    }
    if (table_ == rows_.size()) return false;
    shard.index = shards_++;
    shard.source = table_;
    shard.first = static_cast<uint64_t>(row_);
    row_ += kTables[table_].rows_per_shard;
    return true;
  }

  Result<std::unique_ptr<ShardReader>> MakeReader(EventSink& sink) const override {
    return std::make_unique<RowReader>(*store_, numbers_, sink);
  }

 private:
  // Older recordings lack tables.
  Result<int64_t> CountRows(std::string_view table) {
    const store::Parameter name[] = {std::string(table)};
    ASSIGN_OR_RETURN(
        const auto there,
        store_->Query("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'recording0' AND "
                      "table_name = ?",
                      name));
    ASSIGN_OR_RETURN(const bool counted, there->Next());
    if (!counted || there->Int64(0) == 0) return 0;
    ASSIGN_OR_RETURN(const auto rows,
                     store_->Query(fmt::format("SELECT max(rowid) FROM recording0.{}", table)));
    ASSIGN_OR_RETURN(const bool found, rows->Next());
    return found && !rows->IsNull(0) ? rows->Int64(0) + 1 : 0;
  }

  TraceInfo info_{.format = TraceFormat::kSonde};
  std::unique_ptr<store::Store> store_;
  Numbers numbers_;
  std::vector<int64_t> rows_;  // of each of kTables
  size_t table_ = 0;
  int64_t row_ = 0;
  uint64_t shards_ = 0;
};

}  // namespace

bool IsDuckDb(std::string_view head) { return head.size() >= 12 && head.substr(8, 4) == "DUCK"; }

Result<std::unique_ptr<Trace>> OpenSonde(const std::string& path) { return SondeTrace::Open(path); }

}  // namespace gpusonde::importers::sonde
