// SPDX-License-Identifier: Apache-2.0
#include "importers/ncu/units.h"

#include <array>
#include <optional>
#include <utility>

namespace gpusonde::importers::ncu {
namespace {

struct Spelling {
  std::string_view written;
  std::string_view name;
};

// Words that take a prefix, in the spellings of several versions.
constexpr std::array kWords = {
    Spelling{"byte", "byte"},     Spelling{"B", "byte"},          Spelling{"hz", "Hz"},
    Spelling{"Hz", "Hz"},         Spelling{"inst", "inst"},       Spelling{"cycle", "cycle"},
    Spelling{"sector", "sector"}, Spelling{"request", "request"}, Spelling{"thread", "thread"},
    Spelling{"warp", "warp"},     Spelling{"block", "block"},     Spelling{"register", "register"},
    Spelling{"second", "s"},      Spelling{"sec", "s"},           Spelling{"s", "s"},
};

constexpr std::array kPrefixes = {std::pair{'n', -9}, std::pair{'u', -6}, std::pair{'m', -3},
                                  std::pair{'K', 3},  std::pair{'k', 3},  std::pair{'M', 6},
                                  std::pair{'G', 9},  std::pair{'T', 12}, std::pair{'P', 15}};

struct Part {
  std::string name;
  int exponent = 0;
};

std::optional<std::string_view> Word(std::string_view written) {
  for (const Spelling& spelling : kWords)
    if (spelling.written == written) return spelling.name;
  return std::nullopt;
}

// "Mbyte": 10^6 byte.
Part NormalisePart(std::string_view written) {
  if (const auto word = Word(written)) return {std::string(*word), 0};
  for (const auto& [prefix, exponent] : kPrefixes)
    if (written.size() > 1 && written[0] == prefix)
      if (const auto word = Word(written.substr(1))) return {std::string(*word), exponent};
  return {std::string(written), 0};
}

}  // namespace

int DecimalsOf(std::string_view unit) {
  const bool is_rate = unit.ends_with("/s");
  const bool is_counted = !unit.empty() && unit.find_first_of("/%") == std::string_view::npos;
  return is_rate || is_counted ? 3 : 6;
}

Unit NormaliseUnit(std::string_view written) {
  const size_t slash = written.find('/');
  Part top = NormalisePart(written.substr(0, slash));
  Unit unit{.name = top.name, .exponent = top.exponent};
  if (slash != std::string_view::npos) {
    const Part below = NormalisePart(written.substr(slash + 1));
    unit.name += "/" + below.name;
    unit.exponent -= below.exponent;
  } else if (unit.name == "s") {
    unit.name = "ns";
    unit.exponent += 9;
  }
  unit.decimals = DecimalsOf(unit.name);
  unit.exponent += unit.decimals;
  return unit;
}

}  // namespace gpusonde::importers::ncu
