// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusonde {

// "1 kernel", "2 kernels", "2 processes", "2 launches": for nouns with a regular plural.
inline std::string Counted(int64_t count, std::string_view noun) {
  const std::string_view plural = noun.ends_with('s') || noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : plural);
}

}  // namespace gpusonde
