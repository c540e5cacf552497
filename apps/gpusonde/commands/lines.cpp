// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "command.h"
#include "symbols/line_server.h"

namespace gpusonde::app {

// Started by the other commands, for themselves: not shown to people.
void AddLines(CLI::App& app, int& exit_status) {
  constexpr int kSocket = 3;
  CLI::App* command = app.add_subcommand("lines", "finds source lines for the command that started it");
  command->group("");
  command->callback([&exit_status] {
    const Status served = symbols::ServeLines(kSocket);
    if (served.has_value()) return;
    fmt::print(stderr, "gpusonde lines: {}\n", served.error().message);
    exit_status = kExitFailed;
  });
}

}  // namespace gpusonde::app
