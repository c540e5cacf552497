// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

#include <array>

namespace gpusonde::app {

void AddQuery(CLI::App& app, int& exit_status);
void AddRecord(CLI::App& app, int& exit_status);

std::span<const Command> AllCommands() {
  static constexpr std::array kCommands = {
      Command{"query", AddQuery},
      Command{"record", AddRecord},
  };
  return kCommands;
}

}  // namespace gpusonde::app
