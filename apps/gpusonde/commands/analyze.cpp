// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "base/fd.h"
#include "command.h"

namespace gpusonde::app {
namespace {

constexpr const char* kFooter = R"(
Traces are Nsight Systems SQLite exports and PyTorch profiler (Kineto) JSON, plain, gzip or zstd; what a file is
follows from its content. docs/analyze.md describes the JSON.

  gpusonde analyze report.sqlite
  gpusonde analyze rank*.json.gz --format json | jq '.kernels[:3]')";

struct AnalyzeOptions {
  std::vector<std::string> traces;
  std::string format = "text";
  std::string output;
  std::string rank_from;
  analyze::Options how;
};

Status Run(AnalyzeOptions& options) {
  if (!options.rank_from.empty()) {
    try {
      options.how.rank_from.emplace(options.rank_from, std::regex::ECMAScript);
    } catch (const std::regex_error& error) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("--rank-from: {}", error.what()));
    }
  }
  ASSIGN_OR_RETURN(const analyze::Report report, analyze::Analyze(options.traces, options.how));
  const std::string text = options.format == "json" ? analyze::ToJson(report) : analyze::ToText(report);
  if (options.output.empty()) return WriteAll(STDOUT_FILENO, std::as_bytes(std::span(text)));
  return WriteFileAtomically(options.output, text);
}

}  // namespace

void AddAnalyze(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command = app.add_subcommand("analyze", "What the kernels and copies of GPU traces did");
  command->footer(kFooter);
  command->add_option("trace", options->traces, "Traces, analysed together")->required();
  command->add_option("--format", options->format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  command->add_option("-o,--output", options->output, "The file to write; default: standard output");
  command->add_option("--threads", options->how.threads, "Threads that read; default: one per usable core")
      ->check(CLI::Range(1, 1024));
  command->add_option("--rank-from", options->rank_from,
                      "Ranks from the files' names: a regular expression whose first group is the number");
  command->add_flag("--partial", options->how.partial, "Of damaged traces, take what is there");
  command->callback([options, &exit_status] {
    const Status done = Run(*options);
    if (done.has_value()) return;
    fmt::print(stderr, "gpusonde analyze: {}\n", done.error().message);
    exit_status = kExitFailed;
  });
}

}  // namespace gpusonde::app
