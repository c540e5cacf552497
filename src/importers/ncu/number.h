// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpusonde::importers::ncu {

// The format of numbers in the user's locale: "1,234.5" or "1.234,5". Blanks and apostrophes that group
// digits are skipped in both.
enum class DecimalMark : uint8_t { kPoint, kComma };

// Infers the format from the numbers of a file: "1,5" and "1.234.567" can only be one of the two, "1,234" may
// be either. Without evidence it is the point.
class DecimalMarkFinder {
 public:
  void Look(std::string_view number);
  DecimalMark mark() const { return commas_ > points_ ? DecimalMark::kComma : DecimalMark::kPoint; }

 private:
  int64_t points_ = 0;  // numbers that have a decimal point for certain
  int64_t commas_ = 0;
};

// The number times 10^exponent, rounded; empty for anything that isn't a number, and beyond ±2^61.
std::optional<int64_t> ParseNumber(std::string_view text, DecimalMark mark, int exponent);

}  // namespace gpusonde::importers::ncu
