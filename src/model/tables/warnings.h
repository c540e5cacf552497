// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per move of a leading indicator, as it happens before steps slow down.
struct Warning {
  Id128 warning;
  std::string indicator;
  std::optional<Id128> device;
  int64_t start_ns = 0;
  std::optional<int64_t> end_ns;
  double value = 0;
  std::optional<double> most;
  std::optional<int64_t> expected_ns;
  std::optional<Id128> incident;
  std::optional<int64_t> lead_ns;
  std::string sentence;
};

inline constexpr Table kWarnings(
    "warnings", Key{1}, "One row per move of a leading indicator, as it happens before steps slow down",
    Field("warning", &Warning::warning, "", "identifies it"),
    Field("indicator", &Warning::indicator, "", "the leading indicator: temperature, power, pcie_replays, …"),
    Field("device", &Warning::device, "", "the device; null: the machine"),
    Field("start_ns", &Warning::start_ns, "ns", "when it was reported"),
    Field("end_ns", &Warning::end_ns, "ns", "return to normal; null while it lasts"),
    Field("value", &Warning::value, "", "value when it was reported, in the indicator's unit"),
    Field("most", &Warning::most, "", "the value above which it slows steps, if known"),
    Field("expected_ns", &Warning::expected_ns, "ns", "when that value would be reached"),
    Field("incident", &Warning::incident, "", "the first later incident with a cause that it predicts"),
    Field("lead_ns", &Warning::lead_ns, "ns",
          "from the warning to the incident's first slow step; negative where it came too late"),
    Field("sentence", &Warning::sentence, "", "explanation for the user"));

}  // namespace gpusonde::model
