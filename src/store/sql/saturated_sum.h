// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gpusonde::store {

// SQL of the sum of an integer column, 0 without rows; of a sum that doesn't fit into a BIGINT, the nearest
// one that does. Rows come from untrusted files and agents: a cast that fails would fail for all other rows,
// too.
inline std::string SaturatedSum(std::string_view column) {
  return fmt::format(
      "least(greatest(coalesce(sum({}), 0), -9223372036854775808), 9223372036854775807)::BIGINT", column);
}

}  // namespace gpusonde::store
