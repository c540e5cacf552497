// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "api_client.h"
#include "base/ascii.h"
#include "base/counted.h"
#include "base/terminal.h"
#include "convert/needed_events.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "server/incidents_answer.h"
#include "server/sql_rows.h"
#include "server/url.h"
#include "store/queries/print_rows.h"
#include "store/recordings/recording.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kQueryFooter = R"(
SHOW TABLES and DESCRIBE TABLE list tables and columns, docs/schema.md documents them. A table has the rows of all
files, keyed tables only the last row per key; raw.TABLE has all rows as stored. Ids are 32 hex digits.

  gpusonde query run.sonde 'SHOW TABLES'
  gpusonde query run.sonde "SELECT name, sum(weight_ns) / 1e9 AS seconds
      FROM samples JOIN threads USING (process, tid)
      WHERE state = 'on_cpu' GROUP BY name ORDER BY seconds DESC"

With --server, hosts of a `gpusonde serve` answer, each by itself; the first column is the host's name. The token
must be of scope admin.

  gpusonde query --server https://gpusonde.example:7171 --token-file token \
      'SELECT name, count(*) AS kernels FROM kernels GROUP BY name')";

struct QueryOptions {
  std::vector<std::string> files_and_sql;
  std::string format = "text";
  convert::ImportOptions reading{.metrics = true};  // of traces
  ServerFlags server;
  std::string hosts = "all";
  int64_t limit = 1000;
  int64_t timeout_s = 30;
};

store::RowFormat FormatOf(const std::string& name) {
  if (name == "json") return store::RowFormat::kJson;
  return name == "csv" ? store::RowFormat::kCsv : store::RowFormat::kText;
}

constexpr std::string_view kSpaces = " \t\n";

// Whether this was probably meant as a statement, or as the first word of one without quotes.
bool BeginsSql(const std::string& text) {
  const std::string first = ToLower(text.substr(0, text.find_first_of(kSpaces)));
  constexpr std::array<std::string_view, 5> kFirstWords = {"select", "with", "show", "describe", "from"};
  std::error_code ignored;
  return std::ranges::find(kFirstWords, first) != kFirstWords.end() &&
         !std::filesystem::exists(text, ignored);
}

Status Print(store::Rows& rows, const std::string& format) {
  ASSIGN_OR_RETURN(const store::Printed printed,
                   store::PrintRows(rows, FormatOf(format), stdout, Terminal::Of(STDOUT_FILENO).width));
  if (::isatty(STDERR_FILENO) == 1)
    PrintTo(stderr, "{}{}\n", Counted(printed.rows, "row"),
            printed.cut ? "; values are cut to the terminal's width; use --format csv for whole ones" : "");
  return {};
}

Status Run(const QueryOptions& options, const std::vector<std::string>& files) {
  const std::string& sql = options.files_and_sql.back();
  convert::ImportOptions reading = options.reading;
  reading.gpu_only = convert::NeedsOnlyGpuWork(sql);
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(files, reading));
  ASSIGN_OR_RETURN(const auto rows, store->Query(sql));
  return Print(*rows, options.format);
}

// Longer ones, percent-encoded, are posted: with the other parameters an address has 8 kB (kMaxTargetBytes).
constexpr size_t kMaxSqlInAddress = 4 << 10;

Status AskServer(const QueryOptions& options, ApiServer server) {
  // Beyond the time that the statement may take, for what comes before and after it.
  server.timeout_ns += options.timeout_s * kNanosPerSecond;
  server.when_slow = "ask fewer hosts with --hosts";
  const std::string target = fmt::format("query?limit={}&timeout_s={}&hosts={}", options.limit,
                                         options.timeout_s, server::EncodeQueryValue(options.hosts));
  const std::string& sql = options.files_and_sql.front();
  const std::string encoded = server::EncodeQueryValue(sql);
  const Result<std::string> body = encoded.size() > kMaxSqlInAddress
                                       ? PostToApi(server, target, sql)
                                       : AskApi(server, target + "&sql=" + encoded);
  if (!body.has_value()) {
    if (body.error().code == ErrorCode::kIo) return Fail(body.error());
    const Result<std::string> overview = AskApi(server, "overview");
    if (!overview.has_value() || server::IsOverviewOfServe(*overview)) return Fail(body.error());
    return Fail(ErrorCode::kUnsupported,
                "this server is no `gpusonde serve`, which alone answers SQL; of `up`, query the files of "
                "STATE/days when it has stopped");
  }
  ASSIGN_OR_RETURN(const server::SqlAnswer answer, server::ParseSqlAnswer(*body));
  TRY(Print(*answer.rows, options.format));
  if (answer.more)
    PrintNotice("query", "there are more rows: raise --limit, or select fewer in the statement");
  if (answer.errors.empty()) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("no answer from {}:{}", Counted(std::ssize(answer.errors), "host"),
                          ListFailures(answer.errors)));
}

}  // namespace

void AddQuery(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<QueryOptions>();
  CLI::App* command = app.add_subcommand("query", "Run read-only SQL over recordings and traces");
  command->footer(kQueryFooter);
  command
      ->add_option("FILE... SQL", options->files_and_sql,
                   "Recordings or traces to merge, followed by one SQL statement")
      ->required()
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->option_text(" ");
  command->add_option("--format", options->format, "text (aligned), json (an array of objects) or csv")
      ->capture_default_str()
      ->check(OneOf({"text", "json", "csv"}));
  AddTraceOptions(*command, options->reading);
  AddServerFlags(*command, "the hosts of a `gpusonde serve` at this URL instead of files", options->server);
  const auto of_server = [command](CLI::Option* option) { option->needs(command->get_option("--server")); };
  of_server(command->add_option("--hosts", options->hosts, "all, or names of hosts with commas between them")
                ->capture_default_str());
  of_server(command->add_option("--limit", options->limit, "Rows of all hosts together")
                ->capture_default_str()
                ->check(WholeNumber("N", 1, 10'000)));
  of_server(command->add_option("--timeout", options->timeout_s, "Seconds that all hosts together may take")
                ->capture_default_str()
                ->check(WholeNumber("S", 1, 60)));
  command->callback([options, &exit_status] {
    if (options->files_and_sql.back().find_first_not_of(kSpaces) == std::string::npos)
      throw CLI::ValidationError("the SQL is empty: is a variable unset?");
    if (!options->server.url.empty()) {
      if (options->files_and_sql.size() != 1)
        throw CLI::ValidationError(
            "with --server give one SQL statement and no files; quote SQL that has spaces");
      const ApiServer server = ParseApiServer(options->server);
      exit_status = ExitStatusOf("query", AskServer(*options, server));
      return;
    }
    if (options->files_and_sql.size() < 2)
      throw CLI::ValidationError("give recordings followed by one SQL statement; quote SQL that has spaces");
    const std::vector<std::string> files(options->files_and_sql.begin(), options->files_and_sql.end() - 1);
    if (std::ranges::find(files, "") != files.end())
      throw CLI::ValidationError("an empty path names no file: is a variable unset?");
    if (const auto sql = std::ranges::find_if(files, BeginsSql); sql != files.end())
      throw CLI::ValidationError(
          sql->find_first_of(kSpaces) == std::string::npos
              ? fmt::format("{} is no file, but seems to begin the SQL; quote SQL that has spaces", *sql)
              : fmt::format("\"{}\" is no file, but seems to be SQL; give one statement, after all files",
                            *sql));
    exit_status = RunReader({.command = "query", .files = files, .work = [&] {
                               return ExitStatusOf("query", Run(*options, files));
                             }});
  });
}

}  // namespace gpusonde::app
