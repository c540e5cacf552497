// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api_client.h"
#include "base/counted.h"
#include "base/id128.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "diagnose/print.h"
#include "diagnose/situation_json.h"
#include "flight_recorder/dump.h"
#include "flight_recorder/hang.h"
#include "flight_recorder/print.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "replay/replay.h"
#include "selection_flags.h"
#include "server/incidents_answer.h"
#include "store/recordings/recording.h"
#include "values.h"

namespace gpusonde::app {
namespace {

struct DiagnoseOptions {
  std::vector<std::string> files;
  std::string format = "text";
  convert::ImportOptions reading = {.diagnose = false};  // of traces; it is done here
  ServerFlags server;
  SelectionFlags selection;  // of what the server has; only a time range
};

// Dumps of PyTorch's Flight Recorder say which rank of a job hangs.
Status RunOverDumps(const DiagnoseOptions& options) {
  std::vector<flight_recorder::Dump> dumps;
  for (const std::string& file : options.files) {
    if (!flight_recorder::IsDump(file))
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{} is a dump of PyTorch's Flight Recorder, and {} is not: diagnose one kind of "
                      "files at a time",
                      options.files.front(), file));
    ASSIGN_OR_RETURN(flight_recorder::Dump dump, flight_recorder::ReadDump(file));
    dumps.push_back(std::move(dump));
  }
  ASSIGN_OR_RETURN(const flight_recorder::Hang hang, flight_recorder::FindHang(dumps));
  if (options.format == "json")
    WriteTo(stdout, flight_recorder::FormatJson(dumps, hang));
  else if (options.format == "text")
    WriteTo(stdout, Wrap(flight_recorder::FormatText(dumps, hang), Terminal::Of(STDOUT_FILENO).width, 4));
  else
    return Fail(ErrorCode::kInvalidArgument,
                "dumps of the Flight Recorder have no situations: use text or json");
  return {};
}

Status Run(const DiagnoseOptions& options) {
  if (flight_recorder::IsDump(options.files.front())) return RunOverDumps(options);
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(options.files, options.reading));
  std::map<Id128, std::string> situations;  // the last one of each incident, as JSON
  diagnose::Diagnosis::Options hooks;
  if (options.format == "situations")
    hooks.explained = [&](const diagnose::Situation& situation, const diagnose::Report& report) {
      situations.insert_or_assign(report.incident.incident, diagnose::WriteSituation(situation));
    };
  ASSIGN_OR_RETURN(const diagnose::Diagnosis diagnosis, replay::Diagnose(*store, std::move(hooks)));
  if (options.format == "json") {
    WriteTo(stdout, diagnose::FormatJson(diagnosis));
  } else if (options.format == "situations") {
    for (const auto& [incident, situation] : situations)
      PrintTo(stdout, "{{\"incident\":\"{}\",\"situation\":{}}}\n", incident.ToHex(), situation);
  } else {
    WriteTo(stdout, Wrap(diagnose::FormatText(diagnosis), Terminal::Of(STDOUT_FILENO).width, 4));
  }
  return {};
}

Status AskServer(const DiagnoseOptions& options, ApiServer server, const std::string& times) {
  bool all_hosts = false;
  if (server.host.empty()) {
    ASSIGN_OR_RETURN(const std::string overview, AskApi(server, "overview"));
    all_hosts = server::IsOverviewOfServe(overview);
  }
  server.when_slow =
      all_hosts ? "ask about one host with --host" : "ask about less time with --from and --to";
  if (all_hosts && !times.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "all hosts can only be asked about the last 24 hours; give --host for another time");
  ASSIGN_OR_RETURN(const std::string body,
                   AskApi(server, all_hosts ? "hosts" : "incidents?buckets=0" + times));
  ASSIGN_OR_RETURN(const server::IncidentsAnswer answer, server::ParseIncidents(body));
  if (options.format == "json")
    PrintTo(stdout, "{}\n", PrintableLines(body));
  else
    WriteTo(stdout, Wrap(server::ToText(answer), Terminal::Of(STDOUT_FILENO).width, 4));
  if (answer.errors.empty()) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{} can't be read:{}", Counted(std::ssize(answer.errors), "host"),
                          ListFailures(answer.errors)));
}

}  // namespace

void AddDiagnose(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand("diagnose", "Find slow steps and explain why they were slow");
  command->footer(
      "Examples:\n"
      "  gpusonde diagnose run.sonde\n"
      "  gpusonde diagnose run.sonde --format json | jq -r '.incidents[].sentence'\n"
      "  gpusonde diagnose /tmp/nccl_trace_rank_*    # which rank a job hangs on, by PyTorch's Flight "
      "Recorder\n"
      "  gpusonde diagnose --server https://gpusonde.example:7171 --token-file token  # all hosts of a "
      "`serve`"
      "\n\n"
      "gpusonde finds steps in the GPU work of a program and compares them with its clean ones. "
      "docs/diagnose.md\n"
      "describes the signals it uses and what each cause means.");
  command
      ->add_option("FILE", options->files,
                   "Recordings or traces, read as one; or dumps of PyTorch's Flight Recorder")
      ->check(Path());
  command
      ->add_option("--format", options->format,
                   "text, json, or for each incident a line of JSON with the quantities that its cause is "
                   "judged by")
      ->capture_default_str()
      ->check(OneOf({"text", "json", "situations"}));
  AddTraceOptions(*command, options->reading);
  AddServerFlags(*command, "the server at this URL for the incidents that it found, instead of reading files",
                 options->server);
  AddHostFlag(*command, options->server);
  AddTimeFlags(*command, options->selection);
  for (const char* const name : {"--from", "--to"})
    command->get_option(name)->needs(command->get_option("--server"));
  command->callback([options, &exit_status] {
    CheckFilesOrServer(options->files, options->server);
    if (!options->server.url.empty()) {
      if (options->format == "situations")
        throw CLI::ValidationError("--format", "situations is of files: a server has text and json");
      exit_status = ExitStatusOf("diagnose", AskServer(*options, ParseApiServer(options->server),
                                                       ApiTimeParameters(options->selection)));
      return;
    }
    exit_status = RunReader({.command = "diagnose", .files = options->files, .work = [&] {
                               return ExitStatusOf("diagnose", Run(*options));
                             }});
  });
}

}  // namespace gpusonde::app
