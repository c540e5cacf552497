// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per host wait for a device.
struct Sync {
  Id128 process;
  Id128 device;
  int32_t session = 0;
  int64_t correlation = 0;
  int64_t context = 0;
  int64_t stream = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::string kind;
};

inline constexpr Table kSyncs(
    "syncs", kFacts, "One row per host wait for a device",
    Field("process", &Sync::process, "", "the waiting process"),
    Field("device", &Sync::device, "", "the device waited for"),
    Field("session", &Sync::session, "",
          "awake period of the inject library, within which correlation ids are unique"),
    Field("correlation", &Sync::correlation, "",
          "joins the wait to its call (api_calls) within the session and 60 s"),
    Field("context", &Sync::context, "", "CUDA context id"),
    Field("stream", &Sync::stream, "", "CUDA stream id"),
    Field("start_ns", &Sync::start_ns, "ns", "start of the wait"),
    Field("end_ns", &Sync::end_ns, "ns", "end of the wait"),
    Field("kind", &Sync::kind, "", "event, stream_wait, stream or context"));

}  // namespace gpusonde::model
