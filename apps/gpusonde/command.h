// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "symbols/line_client.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// Exit statuses of every command: done; the thing asked about failed; wrong usage. `record` adds the profiled
// program's own status, 125 when gpusonde itself fails, and 126/127 as env(1).
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// One command of the program. It adds its subcommand with its options, and when the subcommand was chosen
// sets `exit_status` from a CLI11 callback. A new command is a file under commands/ and a line in
// commands.cpp.
struct Command {
  const char* name;
  void (*add)(CLI::App& app, int& exit_status);
};

// How source lines are found: by `gpusonde lines`, unless this program's file isn't known; kept in the user's
// cache.
symbols::LineClient::Options OwnLines();

}  // namespace gpusonde::app
