// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per time that a signal moved as it does before steps slow.
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
    "warnings", Key{1}, "One row per time that a signal moved as it does before steps slow",
    Field("warning", &Warning::warning, "", "identifies it"),
    Field("indicator", &Warning::indicator, "", "which one: temperature, power, pcie_replays, …"),
    Field("device", &Warning::device, "", "whose; null: the machine's"),
    Field("start_ns", &Warning::start_ns, "ns", "when it was told"),
    Field("end_ns", &Warning::end_ns, "ns", "calm again; null while it lasts"),
    Field("value", &Warning::value, "", "of the signal when it was told, in the indicator's unit"),
    Field("most", &Warning::most, "", "the value from which on it does harm, where that is known"),
    Field("expected_ns", &Warning::expected_ns, "ns", "when it would be reached"),
    Field("incident", &Warning::incident, "", "the first incident after it with a cause that it foretells"),
    Field("lead_ns", &Warning::lead_ns, "ns",
          "from the warning to the incident's first slow step; negative where it came too late"),
    Field("sentence", &Warning::sentence, "", "what to tell a person"));

}  // namespace gpusonde::model
