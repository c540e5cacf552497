// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per incident: slow steps of one program.
struct Incident {
  Id128 incident;
  Id128 process;
  int32_t tid = 0;
  int64_t start_ns = 0;
  std::optional<int64_t> end_ns;
  std::optional<int64_t> seen_ns;
  std::optional<int64_t> named_ns;
  double slowdown = 0;
  std::string cause;
  double confidence = 0;
  std::string sentence;
  bool withdrawn = false;
};

// Part of the sentence of an incident whose `before`, in its evidence too, is the time after it: the steps
// before it were never observed.
inline constexpr std::string_view kBeforeIsLater = "\"before\" is since it ended";

inline constexpr Table kIncidents(
    "incidents", Key{1}, "One row per incident: slow steps of one program",
    Field("incident", &Incident::incident, "", "identifies it"),
    Field("process", &Incident::process, "", "the slow process"),
    Field("tid", &Incident::tid, "", "as in steps"),
    Field("start_ns", &Incident::start_ns, "ns", "first slow step"),
    Field("end_ns", &Incident::end_ns, "ns", "recovery; null while it lasts"),
    Field("seen_ns", &Incident::seen_ns, "ns", "when it was first reported"),
    Field("named_ns", &Incident::named_ns, "ns", "when this cause was first named; null while there is none"),
    Field("slowdown", &Incident::slowdown, "1", "step time during over step time before"),
    Field("cause", &Incident::cause, "", "name of the cause, or abstain"),
    Field("confidence", &Incident::confidence, "1",
          "how sure the diagnosis is of the cause: a likelihood, not yet calibrated"),
    Field("sentence", &Incident::sentence, "", "explanation for the user"),
    Field("withdrawn", &Incident::withdrawn, "",
          "whether it turned out, at its end, to be too small to tell from chance; such ones aren't shown"));

}  // namespace gpusonde::model
