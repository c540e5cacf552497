// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/terminal.h"
#include "usage/usage.h"

namespace gpusonde::usage {

// Of a GPU's hour, in any currency; null: nothing is said of costs.
using Price = std::optional<double>;
inline constexpr double kMaxPrice = 1e6;

// A table for a person, at most as wide as the terminal, and what of several hosts is missing. Texts from
// outside are escaped.
std::string ToText(const Usage& usage, Price price, const Terminal& terminal);

// A line per group, times in hours; docs/usage.md has the columns.
std::string ToCsv(const Usage& usage, Price price);

// An object with at most 1,000 groups, times in ns; docs/api.md has the keys.
std::string ToJson(const Usage& usage, Price price);

}  // namespace gpusonde::usage
