// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per period in which a process reported its GPU work; outside of these its GPU work is unknown. A
// session that another listener kept going while no agent ran has a row for each time that it was joined.
struct GpuSession {
  Id128 process;
  int32_t session = 0;
  int64_t start_ns = 0;
  std::optional<int64_t> end_ns;
  std::optional<std::string> end_reason;
  int32_t cupti_version = 0;
};

inline constexpr Table kGpuSessions(
    "gpu_sessions", Key{3},
    "One row per period in which a process reported its GPU work; outside of these its GPU work is unknown",
    Field("process", &GpuSession::process, "", "whose"),
    Field("session", &GpuSession::session, "", "awake period of the inject library, from 1"),
    Field("start_ns", &GpuSession::start_ns, "ns", "begin"),
    Field("end_ns", &GpuSession::end_ns, "ns", "end; null when it was not reported"),
    Field("end_reason", &GpuSession::end_reason, "", "unheard, governor, foreign, exit, cupti or unknown"),
    Field("cupti_version", &GpuSession::cupti_version, "", "as returned by cuptiGetVersion"));

}  // namespace gpusonde::model
