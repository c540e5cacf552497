// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

#include "diagnose/situation.h"

// What causes say alike.
namespace gpusonde::diagnose {

inline std::string Millis(double ns) { return fmt::format("{:.{}f} ms", ns / 1e6, ns < 1e7 ? 1 : 0); }

inline std::string Percent(double part, double whole) {
  return fmt::format("{:.0f} %", whole > 0 ? 100 * part / whole : 0);
}

// "41 % of the time (2 % before)": a state's share of the steps.
inline std::string ShareOf(const Situation& situation, State state) {
  return fmt::format("{} of the time ({} before)", Percent(situation.during[state], situation.during.total()),
                     Percent(situation.before[state], situation.before.total()));
}

}  // namespace gpusonde::diagnose
