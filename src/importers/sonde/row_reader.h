// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "importers/event.h"
#include "importers/trace.h"
#include "store/sql/sql_part.h"
#include "store/store.h"

namespace gpusonde::importers::sonde {

enum class TableKind : uint8_t { kKernels, kMemcpys, kMemsets, kApiCalls, kRanges, kSyncs };

struct TableQuery {
  TableKind kind;
  std::string_view table;
  std::string_view columns;  // in the order in which RowReader reads them
  int64_t rows_per_shard = 65'536;
  std::string_view where = "true";
};

inline constexpr std::array kTables = {
    TableQuery{
        TableKind::kKernels, "kernels",
        "process, start_ns, end_ns, session, correlation, device, stream, name, grid_x, grid_y, grid_z, "
        "block_x, block_y, block_z"},
    // Written by continuous profiling: lists of the kernels of a second. A few hundred rows are 10,000
    // kernels. Times are masked as in store/duckdb/schema.h, so that sums can't overflow in a damaged file.
    TableQuery{
        TableKind::kKernels, "kernel_packs",
        "process, start_ns + (unnest(offsets_ns) & 1073741823), start_ns + (unnest(offsets_ns) & 1073741823) "
        "+ (unnest(durations_ns) & 2305843009213693951), session, unnest(correlations), device, stream, "
        "name, grid_x, grid_y, grid_z, block_x, block_y, block_z",
        2'048, "start_ns >= 0 AND start_ns < 4611686018427387904"},
    TableQuery{TableKind::kMemcpys, "memcpys",
               "process, start_ns, end_ns, session, correlation, device, stream, bytes, kind, source_memory, "
               "target_memory"},
    TableQuery{TableKind::kMemsets, "memsets",
               "process, start_ns, end_ns, session, correlation, device, stream, bytes"},
    TableQuery{TableKind::kApiCalls, "api_calls",
               "process, start_ns, end_ns, session, correlation, domain, name, tid"},
    TableQuery{TableKind::kRanges, "ranges", "process, start_ns, coalesce(end_ns, start_ns), kind, name"},
    TableQuery{TableKind::kSyncs, "syncs", "process, start_ns, end_ns"},
};

// The numbers of a recording's processes and devices in events.
struct Numbers {
  std::map<Id128, int64_t> processes;
  std::map<Id128, int32_t> devices;
  std::optional<int64_t> rank;  // of an imported trace that says its own
};

// Errors: those of Store::Query.
Result<Numbers> ReadNumbers(store::Store& store);

// How many of the calls in a table are a sample of those that the program made, `also` restricts which: empty
// or " AND …". Errors: those of Store::Query.
Result<int64_t> CountSampledCalls(store::Store& store, std::string_view table, const store::SqlPart& also);

// Turns rows into events, for one thread. A shard's `source` is an index of kTables and `first` a rowid.
class RowReader final : public ShardReader {
 public:
  RowReader(store::Store& store, const Numbers& numbers, EventSink& sink)
      : store_(store), numbers_(numbers), sink_(sink) {}

  Status Read(const Shard& shard) override;
  // Reads the rows of a query with the columns of that kind. Errors: those of Store::Query.
  Status ReadAll(TableKind kind, const std::string& sql, std::span<const store::Parameter> parameters);

 private:
  void Add(TableKind kind, const store::Rows& row);
  bool Fill(const store::Rows& row, GpuEvent& event);
  uint32_t KernelName(std::string_view name);

  store::Store& store_;
  const Numbers& numbers_;
  EventSink& sink_;
  std::unordered_map<std::string, uint32_t> kernel_names_;  // by the name in the recording
  EventBatch batch_;
};

}  // namespace gpusonde::importers::sonde
