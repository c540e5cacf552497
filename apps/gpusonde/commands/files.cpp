// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <system_error>

#include "agent/file_server.h"
#include "base/program_file.h"
#include "command.h"
#include "messages.h"
#include "symbols/server_process.h"

namespace gpusonde::app {

std::string OwnProgram() {
  const Result<std::string> program = ProgramFile();
  if (!program.has_value()) return {};
  const std::filesystem::path file(*program);
  // In the package what can be started is not the program itself, but its namesake in bin.
  const std::filesystem::path starter = file.parent_path().parent_path() / "bin" / file.filename();
  std::error_code ignored;
  return std::filesystem::exists(starter, ignored) ? starter.string() : *program;
}

symbols::FileReader::Options OwnFiles() {
  const std::string program = OwnProgram();
  if (program.empty()) return agent::ParsedHere();
  return {.command = {program, "files"}};
}

// Started by the other commands, for themselves: not shown to people.
void AddFiles(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("files", "reads program files for the command that started it");
  command->group("");
  command->callback([&exit_status] {
    const Status served = agent::ServeFiles(symbols::kServerFd);
    if (served.has_value()) return;
    PrintError("files", served.error());
    exit_status = kExitFailed;
  });
}

}  // namespace gpusonde::app
