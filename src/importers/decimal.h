// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpusonde::importers {

// Converts a JSON number of µs to ns: "1712195495519689.123" is 1712195495519689123, exactly, where a double
// would be off by 128. Digits beyond ns round to the nearest, halves away from zero; exponents are supported.
// Trailing blanks and surrounding quotes are ignored. Empty for anything else, and beyond ±2^61 ns.
std::optional<int64_t> ParseMicroseconds(std::string_view text);

// The same for any power of ten: the number times 10^exponent, −40 to 40, rounded.
std::optional<int64_t> ParseScaled(std::string_view text, int exponent);

// A JSON number that is an integer and fits, in any spelling: programs that keep numbers as doubles write
// "7.0" and "1.2e1". Trailing blanks and surrounding quotes are ignored. Empty for any other text.
std::optional<int64_t> ParseWhole(std::string_view text);

}  // namespace gpusonde::importers
