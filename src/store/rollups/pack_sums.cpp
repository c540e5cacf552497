// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/pack_sums.h"

#include <algorithm>

#include "store/rollups/packs.h"
#include "store/sql/gpu_sql.h"

namespace gpusonde::store {

Status AddPacks(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                const std::string& tables, WorkSummer& summer) {
  const PackQuery query{.which = WorkIn::kStartsIn, .tables = tables};
  return ForEachPack(ask, selection, range, query, [&](const Pack& pack) -> Status {
    WorkSummer::Kind& kind = summer.KindOf(
        {.process = pack.process, .device = pack.device, .name = pack.name, .stream = pack.stream});
    for (size_t i = 0; i < pack.size(); ++i)
      if (const int64_t start_ns = pack.StartNs(i); start_ns >= range.from_ns && start_ns < range.to_ns)
        summer.Add(kind, pack.session, std::nullopt, start_ns, pack.DurationNs(i));
    return {};
  });
}

Status AddPackedTimes(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                      const std::string& tables, const TimesOf& times_of) {
  const PackQuery query{.which = WorkIn::kRunsIn, .tables = tables};
  return ForEachPack(ask, selection, range, query, [&](const Pack& pack) -> Status {
    std::vector<TimeRange>& times = *times_of(pack.process, pack.device);
    for (size_t i = 0; i < pack.size(); ++i) {
      const int64_t start_ns = pack.StartNs(i);
      const TimeRange time{std::max(start_ns, range.from_ns),
                           std::min(start_ns + pack.DurationNs(i), range.to_ns)};
      if (time.from_ns < time.to_ns) times.push_back(time);
    }
    return {};
  });
}

}  // namespace gpusonde::store
