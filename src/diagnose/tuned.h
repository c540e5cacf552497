// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde::diagnose {

// A number of a model that was chosen or measured, rather than derived: an entry of one of the tables
// step_table.h, detector_table.h, incident_table.h, causes/weights.h and indicators/thresholds.h.
template <class T>
struct Tuned {
  T value;
  std::string_view unit;
  std::string_view reason;

  // NOLINTNEXTLINE(google-explicit-constructor): it is used as the number that it is.
  constexpr operator T() const { return value; }
};

}  // namespace gpusonde::diagnose
