// SPDX-License-Identifier: Apache-2.0
#include "usage/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api_client.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "base/time.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "selection_flags.h"
#include "server/url.h"
#include "usage/report.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kUsageFooter = R"(
A process holds a GPU from its first work or memory on it until it ends. Time of a GPU that several hold is divided
equally: while work runs among those whose work runs, else among all that hold it. docs/usage.md says more.

  gpusonde usage run.sonde
  gpusonde usage /var/lib/gpusonde/days/*.sonde --by application --price 2.50
  gpusonde usage STATE/hosts/*/*.sonde --by job --format csv > jobs.csv

With --server, a running `gpusonde serve`, `up` or `view` answers; all hosts of `serve` together in whole hours of UTC,
by default the last 24.

  gpusonde usage --server https://gpusonde.example:7171 --token-file token \
      --by user --from 2026-11-01T00:00:00)";

// Reading days of one host takes a while.
constexpr int64_t kServerTimeoutNs = 60 * kNanosPerSecond;

struct UsageOptions {
  std::vector<std::string> files;
  std::string by = "owner";
  usage::SumBy sum_by;
  std::string format = "text";
  std::optional<double> price;
  SelectionFlags selection;
  convert::ImportOptions reading;  // of traces
  ServerFlags server;
};

Status Run(const UsageOptions& options) {
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(options.files, options.reading));
  ASSIGN_OR_RETURN(const model::Selection selection, Select(*store, options.selection));
  ASSIGN_OR_RETURN(const usage::Usage usage, usage::ReadUsage(*store, selection, options.sum_by));
  const std::string report = options.format == "csv" ? usage::ToCsv(usage, options.price)
                             : options.format == "json"
                                 ? usage::ToJson(usage, options.price) + "\n"
                                 : usage::ToText(usage, options.price, Terminal::Of(STDOUT_FILENO));
  WriteTo(stdout, report);
  return {};
}

Status AskServer(const UsageOptions& options, const ApiServer& server, const std::string& times) {
  std::string target = options.format == "csv"    ? "usage.csv"
                       : options.format == "json" ? "usage"
                                                  : "usage.txt";
  target += fmt::format("?by={}{}", server::EncodeQueryValue(usage::NameOf(options.sum_by)), times);
  if (options.price.has_value()) target += fmt::format("&price={}", *options.price);
  if (options.format == "text") target += fmt::format("&width={}", Terminal::Of(STDOUT_FILENO).width);
  ASSIGN_OR_RETURN(std::string report, AskApi(server, target));
  std::erase(report, '\r');  // of CSV; a control character like others that the server could send
  PrintTo(stdout, "{}{}", PrintableLines(report), options.format == "json" ? "\n" : "");
  return {};
}

}  // namespace

void AddUsage(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<UsageOptions>();
  CLI::App* command = app.add_subcommand("usage", "Sum up who held GPUs, and used or wasted them");
  command->footer(kUsageFooter);
  command->add_option("FILE", options->files, "Recordings or traces to sum up")->check(Path());
  command
      ->add_option(
          "--by", options->by,
          fmt::format("What GPU time is summed by: {} or label:NAME, a label of pods; an owner is a pod, "
                      "job, container, service or user",
                      fmt::join(usage::kByNames, ", ")))
      ->capture_default_str();
  command->add_option("--price", options->price, "Price per GPU-hour; adds the cost of idle time")
      ->check(Number("PRICE", 0, usage::kMaxPrice));
  command->add_option("--format", options->format, "text, csv or json")
      ->capture_default_str()
      ->check(OneOf({"text", "csv", "json"}));
  AddTimeFlags(*command, options->selection);
  AddTraceOptions(*command, options->reading);
  AddServerFlags(*command, "the server at this URL instead of reading files", options->server);
  AddHostFlag(*command, options->server);
  command->callback([options, &exit_status] {
    const std::optional<usage::SumBy> by = usage::FindBy(options->by);
    if (!by.has_value())
      throw CLI::ValidationError("--by", fmt::format("{} is not one of {} or label:NAME", options->by,
                                                     fmt::join(usage::kByNames, ", ")));
    options->sum_by = *by;
    CheckFilesOrServer(options->files, options->server);
    if (!options->server.url.empty()) {
      ApiServer server = ParseApiServer(options->server);
      server.timeout_ns = kServerTimeoutNs;
      server.when_slow = "ask about less time with --from and --to";
      exit_status = ExitStatusOf("usage", AskServer(*options, server, ApiTimeParameters(options->selection)));
      return;
    }
    exit_status = RunReader({.command = "usage", .files = options->files, .work = [&] {
                               return ExitStatusOf("usage", Run(*options));
                             }});
  });
}

}  // namespace gpusonde::app
