// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/packs.h"

#include <fmt/format.h>

#include "store/duckdb/schema.h"
#include "store/each_row.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {

Status ForEachPack(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                   const PackQuery& query, const std::function<Status(const Pack&)>& on_pack) {
  SqlPart sql{
      fmt::format("SELECT process, device, session, stream, name, start_ns, offsets_ns, "
                  "durations_ns{} FROM {}kernel_packs WHERE {} AND ",
                  query.launches ? ", correlations, graph_nodes" : "", query.tables, duckdb::kSoundPack),
      {}};
  sql += PacksIn(selection, range, query.which);
  return ForEachRow(ask, sql, [&](const Rows& row) {
    return on_pack({.process = row.Id(0),
                    .device = row.Id(1),
                    .session = row.Int64(2),
                    .stream = row.Int64(3),
                    .name = std::string(row.Text(4)),
                    .second_ns = BoundTime(row.Int64(5)),
                    .offsets_ns = row.Int64List(6),
                    .durations_ns = row.Int64List(7),
                    .correlations = query.launches ? row.Int64List(8) : std::vector<int64_t>(),
                    .graph_nodes = query.launches ? row.Int64List(9) : std::vector<int64_t>()});
  });
}

}  // namespace gpusonde::store
