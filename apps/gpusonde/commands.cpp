// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

#include <array>

namespace gpusonde::app {

void AddRecord(CLI::App& app, int& exit_status);
void AddView(CLI::App& app, int& exit_status);

std::span<const Command> AllCommands() {
  static constexpr std::array kCommands = {
      Command{"record", AddRecord},
      Command{"view", AddView},
  };
  return kCommands;
}

}  // namespace gpusonde::app
