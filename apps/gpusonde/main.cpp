// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/version.h"
#include "commands.h"

namespace gpusonde::app {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("GPU performance observability, from one process to a planet of GPUs.", "gpusonde");
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(1);
  int exit_status = kExitOk;
  for (const Command& command : AllCommands()) command.add(app, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr,
                 "gpusonde: %s\nRun `gpusonde --help`, or `gpusonde COMMAND --help` for one command.\n",
                 error.what());
    return kExitUsage;
  }
  return exit_status;
}

}  // namespace
}  // namespace gpusonde::app

int main(int argc, char** argv) { return gpusonde::app::Main(argc, argv); }
