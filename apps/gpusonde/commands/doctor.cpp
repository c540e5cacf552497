// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/state_folder.h"
#include "base/terminal.h"
#include "command.h"
#include "doctor/report.h"
#include "messages.h"
#include "values.h"

namespace gpusonde::app {
namespace {

struct DoctorOptions {
  std::string format = "text";
  std::string state_folder = DefaultStateFolder();
};

int Diagnose(const DoctorOptions& options) {
  const doctor::Report report = doctor::Examine({.state_folder = options.state_folder});
  WriteTo(stdout, options.format == "json" ? doctor::FormatJson(report)
                                           : doctor::FormatText(report, Terminal::Of(STDOUT_FILENO)));
  return report.CanRecord() ? kExitOk : kExitFailed;
}

}  // namespace

void AddDoctor(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("doctor", "Check what works on this machine and how to fix what doesn't");
  auto options = std::make_shared<DoctorOptions>();
  command->add_option("--format", options->format, "text or json (docs/doctor.md)")
      ->check(OneOf({"text", "json"}))
      ->capture_default_str();
  command->add_option("--state", options->state_folder, "The folder where `gpusonde up` keeps its data")
      ->check(Path())
      ->capture_default_str();
  command->footer(
      "Exit status 0 if `gpusonde record` would work here, else 1.\n\n"
      "Example: gpusonde doctor --format json | jq '.capabilities[] | select(.works | not)'");
  command->callback([options, &exit_status] { exit_status = Diagnose(*options); });
}

}  // namespace gpusonde::app
