// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "base/state_folder.h"
#include "command.h"
#include "messages.h"
#include "symbols/line_server.h"
#include "symbols/server_process.h"
#include "values.h"

namespace gpusonde::app {

symbols::LineClient::Options OwnLines() {
  const std::string program = OwnProgram();
  if (program.empty()) return {};
  return {.command = {program, "lines"}, .cache_folder = CacheFolder() + "/lines"};
}

// Started by the other commands for themselves, so it has no group and --help doesn't list it.
void AddLines(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("lines", "finds source lines for the command that started it");
  command->group("");
  command->callback([&exit_status] {
    const Status served = symbols::ServeLines(symbols::kServerFd);
    if (served.has_value()) return;
    PrintError("lines", served.error());
    exit_status = kExitFailed;
  });
}

}  // namespace gpusonde::app
