// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/version.h"
#include "commands.h"

namespace gpusonde::app {
namespace {

int WrongUsage(const char* message) {
  std::fprintf(stderr, "gpusonde: %s\nRun `gpusonde --help`, or `gpusonde COMMAND --help` for one command.\n",
               message);
  return kExitUsage;
}

int Main(int argc, char** argv) {
  CLI::App app("GPU performance observability, from one process to a planet of GPUs.", "gpusonde");
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(0, 1);  // with 1, CLI11 reports that before what it could not read
  int exit_status = kExitOk;
  for (const Command& command : AllCommands()) command.add(app, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return WrongUsage(error.what());
  }
  if (app.get_subcommands().empty()) return WrongUsage("no command was given");
  return exit_status;
}

}  // namespace
}  // namespace gpusonde::app

int main(int argc, char** argv) { return gpusonde::app::Main(argc, argv); }
