// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per distinct stack.
struct Stack {
  Id128 stack;
  std::vector<Id128> locations;
};

inline constexpr Table kStacks("stacks", Key{1}, "One row per distinct stack",
                               Field("stack", &Stack::stack, "", "hash of its locations"),
                               Field("locations", &Stack::locations, "", "leaf first"));

}  // namespace gpusonde::model
