// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/id128.h"
#include "model/batch.h"
#include "model/drops.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per time that data was lost, with the reason (docs/metrics.md lists the reasons).
struct Drop {
  int64_t time_ns = 0;
  Id128 source;
  DropReason reason{};
  int64_t count = 0;
};

inline constexpr Table kDrops(
    "drops", kFacts,
    "One row per time that data was lost, with the reason (docs/metrics.md lists the reasons)",
    Field("time_ns", &Drop::time_ns, "ns", "when it was noticed"),
    Field("source", &Drop::source, "", "the run that lost it"), Field("reason", &Drop::reason, "", "why"),
    Field("count", &Drop::count, "", "how many records"));

// Appends a row for each reason under which something was counted.
inline void AppendDrops(const DropCounts& counts, int64_t time_ns, const Id128& source,
                        BatchBuilder<decltype(kDrops)>& rows) {
  for (const DropInfo& info : kDropReasons)
    if (const int64_t count = counts.Of(info.reason); count > 0)
      rows.Append({.time_ns = time_ns, .source = source, .reason = info.reason, .count = count});
}

}  // namespace gpusonde::model
