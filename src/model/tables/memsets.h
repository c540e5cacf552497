// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per memory set.
struct Memset {
  Id128 process;
  Id128 device;
  int32_t session = 0;
  int64_t correlation = 0;
  int64_t context = 0;
  int64_t stream = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t bytes = 0;
  std::optional<int64_t> graph_node;
};

inline constexpr Table kMemsets(
    "memsets", kFacts, "One row per memory set",
    Field("process", &Memset::process, "", "the launching process"),
    Field("device", &Memset::device, "", "device it ran on"),
    Field("session", &Memset::session, "",
          "awake period of the inject library, within which correlation ids are unique"),
    Field("correlation", &Memset::correlation, "",
          "joins the set to its launch (api_calls) within the session and 60 s"),
    Field("context", &Memset::context, "", "CUDA context id"),
    Field("stream", &Memset::stream, "", "CUDA stream id"),
    Field("start_ns", &Memset::start_ns, "ns", "start on the device"),
    Field("end_ns", &Memset::end_ns, "ns", "end on the device"),
    Field("bytes", &Memset::bytes, "bytes", "size"),
    Field("graph_node", &Memset::graph_node, "", "CUDA graph node id; null outside graphs"));

}  // namespace gpusonde::model
