// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

#include <array>

namespace gpusonde::app {

std::span<const Command> AllCommands() {
  static constexpr std::array<Command, 0> kCommands{};
  return kCommands;
}

}  // namespace gpusonde::app
