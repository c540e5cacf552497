// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
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

symbols::FileReader::Options OwnFiles(agent::FilePriority priority) {
  const std::string program = OwnProgram();
  if (program.empty()) return agent::ParsedHere();
  symbols::FileReader::Options options{.command = {program, "files"}};
  if (priority == agent::FilePriority::kBackground) options.command.emplace_back("--background");
  return options;
}

// Started by the other commands, for themselves: not shown to people.
void AddFiles(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("files", "reads program files for the command that started it");
  command->group("");
  const auto priority = std::make_shared<agent::FilePriority>(agent::FilePriority::kNormal);
  command->add_flag_callback(
      "--background", [priority] { *priority = agent::FilePriority::kBackground; },
      "yield the CPUs to other programs");
  command->callback([&exit_status, priority] {
    const Status served = agent::ServeFiles(symbols::kServerFd, *priority);
    if (served.has_value()) return;
    PrintError("files", served.error());
    exit_status = kExitFailed;
  });
}

}  // namespace gpusonde::app
