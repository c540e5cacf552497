// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per signal for or against an incident's cause, per part of the step time, and per cause considered.
struct Evidence {
  Id128 incident;
  std::string signal;
  std::optional<double> before;
  std::optional<double> during;
  double score = 0;
  std::string sentence;
};

inline constexpr Table kEvidence("evidence", Key{2},
                                 "One row per signal for or against an incident's cause, per "
                                 "part of the step time, and per cause considered",
                                 Field("incident", &Evidence::incident, "", "which"),
                                 Field("signal", &Evidence::signal, "",
                                       "metric of the catalogue, or cause.NAME"),
                                 Field("before", &Evidence::before, "", "value before, in the metric's unit"),
                                 Field("during", &Evidence::during, "",
                                       "value during; of a cause: its share of the excess"),
                                 Field("score", &Evidence::score, "nat", "log likelihood ratio"),
                                 Field("sentence", &Evidence::sentence, "", "explanation for the user"));

}  // namespace gpusonde::model
