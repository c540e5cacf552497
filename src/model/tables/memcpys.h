// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per memory copy.
struct Memcpy {
  Id128 process;
  Id128 device;
  int32_t session = 0;
  int64_t correlation = 0;
  int64_t context = 0;
  int64_t stream = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t bytes = 0;
  std::string kind;
  std::string source_memory;
  std::string target_memory;
  bool asynchronous = false;
  std::optional<int64_t> graph_node;
};

inline constexpr Table kMemcpys(
    "memcpys", kFacts, "One row per memory copy",
    Field("process", &Memcpy::process, "", "the launching process"),
    Field("device", &Memcpy::device, "", "device it ran on"),
    Field("session", &Memcpy::session, "",
          "awake period of the inject library, within which correlation ids are unique"),
    Field("correlation", &Memcpy::correlation, "",
          "joins the copy to its launch (api_calls) within the session and 60 s"),
    Field("context", &Memcpy::context, "", "CUDA context id"),
    Field("stream", &Memcpy::stream, "", "CUDA stream id"),
    Field("start_ns", &Memcpy::start_ns, "ns", "start on the device"),
    Field("end_ns", &Memcpy::end_ns, "ns", "end on the device"),
    Field("bytes", &Memcpy::bytes, "bytes", "size"),
    Field("kind", &Memcpy::kind, "", "htod, dtoh, dtod, ptop, htoh or unknown"),
    Field("source_memory", &Memcpy::source_memory, "", "pageable, pinned, device, managed or unknown"),
    Field("target_memory", &Memcpy::target_memory, "", "pageable, pinned, device, managed or unknown"),
    Field("asynchronous", &Memcpy::asynchronous, "", "issued by an asynchronous call"),
    Field("graph_node", &Memcpy::graph_node, "", "CUDA graph node id; null outside graphs"));

}  // namespace gpusonde::model
