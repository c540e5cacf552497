// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// Sums of a metric of the host over consecutive time buckets. Rows of the same bucket add up.
struct Signal {
  int64_t start_ns = 0;
  int64_t bucket_ns = 0;
  Id128 source;
  std::string metric;
  std::optional<Id128> process;
  std::optional<int32_t> tid;
  std::optional<Id128> other;
  std::vector<int64_t> values;
};

inline constexpr Table kSignals(
    "signals", kFacts,
    "Sums of a metric of the host over consecutive time buckets; rows of the same bucket add up",
    Field("start_ns", &Signal::start_ns, "ns", "begin of the first bucket"),
    Field("bucket_ns", &Signal::bucket_ns, "ns", "length of each"),
    Field("source", &Signal::source, "", "the run that measured it"),
    Field("metric", &Signal::metric, "", "name in the catalogue (docs/metrics.md)"),
    Field("process", &Signal::process, "", "the process; null: the whole machine"),
    Field("tid", &Signal::tid, "", "the thread, for signals of a thread"),
    Field("other", &Signal::other, "", "the process that caused it or was waited for, if known"),
    Field("values", &Signal::values, "",
          "a sum for each bucket, in the metric's unit; a thread's time that is longer than a bucket began "
          "before it"));

}  // namespace gpusonde::model
