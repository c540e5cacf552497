// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/program_file.h"
#include "base/state_folder.h"
#include "command.h"
#include "messages.h"
#include "symbols/line_server.h"
#include "values.h"

namespace gpusonde::app {

symbols::LineClient::Options OwnLines() {
  const Result<std::string> program = ProgramFile();
  if (!program.has_value()) return {};
  const std::filesystem::path file(*program);
  // In the package what can be started is not the program itself, but its namesake in bin.
  const std::filesystem::path starter = file.parent_path().parent_path() / "bin" / file.filename();
  std::error_code ignored;
  const bool packaged = std::filesystem::exists(starter, ignored);
  return {.command = {packaged ? starter.string() : *program, "lines"},
          .cache_folder = CacheFolder() + "/lines"};
}

// Started by the other commands, for themselves: not shown to people.
void AddLines(CLI::App& app, int& exit_status) {
  constexpr int kSocket = 3;
  CLI::App* command = app.add_subcommand("lines", "finds source lines for the command that started it");
  command->group("");
  command->callback([&exit_status] {
    const Status served = symbols::ServeLines(kSocket);
    if (served.has_value()) return;
    PrintError("lines", served.error());
    exit_status = kExitFailed;
  });
}

}  // namespace gpusonde::app
