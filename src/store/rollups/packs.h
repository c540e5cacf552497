// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "base/time_range.h"
#include "model/selection.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {

// The kernels of a row of table kernel_packs, in no particular order. Rows come from untrusted files:
// whatever they say, times can be added up.
struct Pack {
  Id128 process;
  Id128 device;
  int64_t session = 0;
  int64_t stream = 0;
  std::string name;  // mangled
  int64_t second_ns = 0;
  std::vector<int64_t> offsets_ns;
  std::vector<int64_t> durations_ns;
  // Empty unless they were asked for.
  std::vector<int64_t> correlations;
  std::vector<int64_t> graph_nodes;

  size_t size() const { return std::min(offsets_ns.size(), durations_ns.size()); }
  int64_t StartNs(size_t i) const { return second_ns + (offsets_ns[i] & kOffsetMask); }
  int64_t DurationNs(size_t i) const { return durations_ns[i] & kDurationMask; }

 private:
  // As duckdb::kPackedTimes has them.
  static constexpr int64_t kOffsetMask = (int64_t{1} << 30) - 1;
  static constexpr int64_t kDurationMask = (int64_t{1} << 61) - 1;
};

struct PackQuery {
  WorkIn which = WorkIn::kStartsIn;
  bool launches = false;  // with what leads to launches: correlation ids and graph nodes
  std::string tables;     // a prefix of table names: "" or a schema and a dot
};

// Calls `on_pack` for each pack of the selection's process, device and stream that may contain work of the
// range; it may contain other kernels of the same second, too. Errors: those of `ask` and `on_pack`.
Status ForEachPack(const Ask& ask, const model::Selection& selection, const TimeRange& range,
                   const PackQuery& query, const std::function<Status(const Pack&)>& on_pack);

}  // namespace gpusonde::store
