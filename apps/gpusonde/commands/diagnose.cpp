// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/terminal.h"
#include "command.h"
#include "diagnose/print.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "replay/replay.h"
#include "store/recordings/recording.h"
#include "values.h"

namespace gpusonde::app {
namespace {

struct DiagnoseOptions {
  std::vector<std::string> files;
  bool json = false;
  convert::ImportOptions reading;  // of traces
};

Status Run(const DiagnoseOptions& options) {
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(options.files, options.reading));
  diagnose::Diagnosis diagnosis({});
  ASSIGN_OR_RETURN(const TimeRange span, replay::ReadSpan(*store, 0));
  TRY(replay::Replay(*store, span, diagnosis));
  diagnosis.Finish(span.to_ns);
  if (options.json)
    fmt::print("{}", diagnose::FormatJson(diagnosis));
  else
    fmt::print("{}", Wrap(diagnose::FormatText(diagnosis), Terminal::Of(STDOUT_FILENO).width, 4));
  return {};
}

}  // namespace

void AddDiagnose(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand("diagnose", "Find slow steps and explain why they were slow");
  command->footer(
      "Examples:\n"
      "  gpusonde diagnose run.sonde\n"
      "  gpusonde diagnose run.sonde --format json | jq -r '.incidents[].sentence'\n\n"
      "gpusonde finds steps in the GPU work of a program; the first twenty set the baseline. "
      "docs/diagnose.md "
      "describes the signals it uses and what each cause means.");
  command->add_option("FILE...", options->files, "recordings or traces, read as one")
      ->required()
      ->option_text(" ");
  command
      ->add_option_function<std::string>(
          "--format", [options](const std::string& format) { options->json = format == "json"; },
          "text or json")
      ->check(OneOf({"text", "json"}))
      ->option_text("text|json");
  AddTraceOptions(*command, options->reading);
  command->callback([options, &exit_status] {
    exit_status = RunReader({.command = "diagnose", .files = options->files, .work = [&] {
                               const Status done = Run(*options);
                               if (done.has_value()) return kExitOk;
                               PrintError("diagnose", done.error());
                               return kExitFailed;
                             }});
  });
}

}  // namespace gpusonde::app
