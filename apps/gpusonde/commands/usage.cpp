// SPDX-License-Identifier: Apache-2.0
#include "usage/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/terminal.h"
#include "command.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "selection_flags.h"
#include "usage/report.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kUsageFooter = R"(
A process holds a GPU from its first work or memory on it until it ends. Time of a GPU that several hold is divided
equally: while work runs among those whose work runs, else among all that hold it. docs/usage.md says more.

  gpusonde usage run.sonde
  gpusonde usage /var/lib/gpusonde/*.sonde --by application --from 2026-11-24T00:00:00 --price 2.50
  gpusonde usage STATE/hosts/*/*.sonde --by job --format csv > jobs.csv)";

struct UsageOptions {
  std::vector<std::string> files;
  std::string by = "owner";
  usage::SumBy sum_by;
  std::string format = "text";
  std::optional<double> price;
  SelectionFlags selection;
  convert::ImportOptions reading;  // of traces
};

Status Run(const UsageOptions& options) {
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(options.files, options.reading));
  ASSIGN_OR_RETURN(const model::Selection selection, Select(*store, options.selection));
  ASSIGN_OR_RETURN(const usage::Usage usage, usage::ReadUsage(*store, selection, options.sum_by));
  const std::string report = options.format == "csv" ? usage::ToCsv(usage, options.price)
                             : options.format == "json"
                                 ? usage::ToJson(usage, options.price) + "\n"
                                 : usage::ToText(usage, options.price, Terminal::Of(STDOUT_FILENO));
  fmt::print("{}", report);
  return {};
}

}  // namespace

void AddUsage(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<UsageOptions>();
  CLI::App* command = app.add_subcommand("usage", "Sum up who held GPUs, and used or wasted them");
  command->footer(kUsageFooter);
  command->add_option("FILE", options->files, "Recordings or traces to sum up")->required();
  command
      ->add_option(
          "--by", options->by,
          fmt::format("What GPU time is summed by: {} or label:NAME, a label of pods; an owner is a pod, "
                      "job, container, service or user",
                      fmt::join(usage::kByNames, ", ")))
      ->capture_default_str();
  command->add_option("--price", options->price, "Of a GPU for an hour: adds what idle time costs")
      ->check(Number("PRICE", 0, 1e6));
  command->add_option("--format", options->format, "text, csv or json")
      ->capture_default_str()
      ->check(OneOf({"text", "csv", "json"}));
  AddTimeFlags(*command, options->selection);
  AddTraceOptions(*command, options->reading);
  command->callback([options, &exit_status] {
    const std::optional<usage::SumBy> by = usage::FindBy(options->by);
    if (!by.has_value())
      throw CLI::ValidationError("--by", fmt::format("{} is not one of {} or label:NAME", options->by,
                                                     fmt::join(usage::kByNames, ", ")));
    options->sum_by = *by;
    exit_status = RunReader({.command = "usage", .files = options->files, .work = [&] {
                               const Status done = Run(*options);
                               if (done.has_value()) return kExitOk;
                               PrintError("usage", done.error());
                               return kExitFailed;
                             }});
  });
}

}  // namespace gpusonde::app
