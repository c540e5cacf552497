// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/terminal.h"
#include "command.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "store/queries/print_rows.h"
#include "store/recordings/recording.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kQueryFooter = R"(
SHOW TABLES and DESCRIBE TABLE list tables and columns, docs/schema.md documents them. A table has the rows of all
files, keyed tables only the last row per key; raw.TABLE has all rows as stored. Ids are 32 hex digits.

  gpusonde query run.sonde 'SHOW TABLES'
  gpusonde query run.sonde "SELECT name, sum(weight_ns) / 1e9 AS seconds FROM samples JOIN threads USING (process, tid)
                            WHERE state = 'on_cpu' GROUP BY name ORDER BY seconds DESC")";

struct QueryOptions {
  std::vector<std::string> files_and_sql;
  std::string format = "text";
  convert::ImportOptions reading;  // of traces
};

store::RowFormat FormatOf(const std::string& name) {
  if (name == "json") return store::RowFormat::kJson;
  return name == "csv" ? store::RowFormat::kCsv : store::RowFormat::kText;
}

Status Run(const QueryOptions& options, const std::vector<std::string>& files) {
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(files, options.reading));
  ASSIGN_OR_RETURN(const auto rows, store->Query(options.files_and_sql.back()));
  ASSIGN_OR_RETURN(const store::Printed printed, store::PrintRows(*rows, FormatOf(options.format), stdout,
                                                                  Terminal::Of(STDOUT_FILENO).width));
  if (::isatty(STDERR_FILENO) == 1)
    fmt::print(
        stderr, "{}{}\n", Counted(printed.rows, "row"),
        printed.cut ? "; values are cut to the terminal's width; use --format csv for whole ones" : "");
  return {};
}

}  // namespace

void AddQuery(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<QueryOptions>();
  CLI::App* command = app.add_subcommand("query", "Run read-only SQL over recordings and traces");
  command->footer(kQueryFooter);
  command
      ->add_option("FILE... SQL", options->files_and_sql,
                   "recordings or traces to merge, followed by one SQL statement")
      ->required()
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->option_text(" ");
  command->add_option("--format", options->format, "text (aligned), json (an array of objects) or csv")
      ->check(OneOf({"text", "json", "csv"}));
  AddTraceOptions(*command, options->reading);
  command->callback([options, &exit_status] {
    if (options->files_and_sql.size() < 2)
      throw CLI::ValidationError("give recordings followed by one SQL statement; quote SQL that has spaces");
    const std::vector<std::string> files(options->files_and_sql.begin(), options->files_and_sql.end() - 1);
    exit_status = RunReader({.command = "query", .files = files, .work = [&] {
                               const Status done = Run(*options, files);
                               if (done.has_value()) return kExitOk;
                               PrintError("query", done.error());
                               return kExitFailed;
                             }});
  });
}

}  // namespace gpusonde::app
