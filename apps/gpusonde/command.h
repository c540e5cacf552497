// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "agent/file_server.h"
#include "symbols/file_reader.h"
#include "symbols/line_client.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// Exit statuses of every command: success, failure, wrong usage. `record` also returns the profiled program's
// own status, 125 when gpusonde itself fails, and 126/127 as env(1) does.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// One command of the program. It adds its subcommand with its options; when the user chose the subcommand, a
// CLI11 callback runs it and sets `exit_status`. A new command is a file under commands/ and a line in
// commands.cpp.
struct Command {
  std::string_view name;
  void (*add)(CLI::App& app, int& exit_status);
};

// Every command, by name.
std::span<const Command> AllCommands();

// What starts this program; empty when its file isn't known.
std::string OwnProgram();

// How source lines are found: by `gpusonde lines`, unless this program's file isn't known; kept in the user's
// cache.
symbols::LineClient::Options OwnLines();

// How program files are parsed: by `gpusonde files`, unless this program's file isn't known.
symbols::FileReader::Options OwnFiles(agent::FilePriority priority);

}  // namespace gpusonde::app
