// SPDX-License-Identifier: Apache-2.0
#include "importers/sonde/clocks.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "store/recordings/recording.h"
#include "store/sql/sql_part.h"

namespace gpusonde::importers::sonde {

Result<Clocks> ReadRecordedClocks(const std::string& path) {
  ASSIGN_OR_RETURN(const auto store, store::OpenRecordings({path}));
  // A value holds until the next one of its metric.
  const store::SqlPart sql{
      "SELECT m.time_ns, d.ordinal, "
      "coalesce(max(m.value) FILTER (m.metric = 'gpu.clock.sm'), -1)::BIGINT, "
      "coalesce(max(m.value) FILTER (m.metric = 'gpu.throttle.reasons'), -1)::BIGINT "
      "FROM metrics m JOIN devices d ON d.device = m.device "
      "WHERE m.metric IN ('gpu.clock.sm', 'gpu.throttle.reasons') "
      "AND m.value >= 0 AND m.value < 4294967296 GROUP BY 1, 2 ORDER BY 1, 2",
      {}};
  Clocks clocks;
  std::map<int64_t, ClockSample> last;
  TRY(store::ForEachRow(*store, sql, [&](const store::Rows& row) {
    ClockSample& sample = last[row.Int64(1)];
    sample.time_ns = row.Int64(0);
    if (row.Int64(2) >= 0) sample.mhz = static_cast<int32_t>(std::min<int64_t>(row.Int64(2), INT32_MAX));
    if (row.Int64(3) >= 0) sample.reasons = static_cast<uint32_t>(row.Int64(3));
    clocks.Add(static_cast<int32_t>(row.Int64(1)), sample);
  }));
  return clocks;
}

}  // namespace gpusonde::importers::sonde
