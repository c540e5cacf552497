// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per annotated range: NVTX, framework annotations and operators.
struct Range {
  Id128 process;
  int32_t tid = 0;
  int64_t start_ns = 0;
  std::optional<int64_t> end_ns;
  std::string kind;
  std::string domain;
  std::string name;
};

inline constexpr Table kRanges(
    "ranges", kFacts, "One row per annotated range: NVTX, framework annotations and operators",
    Field("process", &Range::process, "", "whose"),
    Field("tid", &Range::tid, "", "thread id in the host namespace"),
    Field("start_ns", &Range::start_ns, "ns", "begin"),
    Field("end_ns", &Range::end_ns, "ns", "end; null when it never ended"),
    Field("kind", &Range::kind, "", "nvtx_push_pop, nvtx_start_end, annotation or operator"),
    Field("domain", &Range::domain, "", "NVTX domain"), Field("name", &Range::name, "", "text"));

}  // namespace gpusonde::model
