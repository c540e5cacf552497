// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "analyze/analyzer.h"
#include "command.h"
#include "compare/comparison.h"
#include "messages.h"
#include "traces.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kCompareFooter = R"(
A and B are recordings or traces, as those of gpusonde analyze, or folders with those of all ranks of a job. Launches
of one kernel with equal shapes are compared. If one run did more work than the other, its figures are divided by
that. docs/compare.md describes the figures, the tests and the JSON.

  gpusonde compare yesterday.sonde today.sonde
  gpusonde compare before.sqlite after.sqlite --format json | jq '.pace'
  gpusonde compare main.sonde branch.sonde --fail-over 5%     exit status 1 if B takes significantly longer)";

struct CompareOptions {
  std::string a, b;
  std::string format = "text";
  std::string output;
  std::string communication;
  std::string fail_over;
  std::string min_change = "1%";
  analyze::Options how;
};

// "5%" or "5" as 0.05.
Result<double> ParsePercent(const char* option, std::string_view text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  const bool ends = rest == end || (rest + 1 == end && *rest == '%');
  if (error == std::errc() && ends && percent >= 0 && percent <= 1000) return percent / 100;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} {}: write a percentage, such as 5%", option, text));
}

// The files of a side: itself, or all files of a folder.
Result<std::vector<std::string>> FilesOf(const std::string& side) {
  std::error_code error;
  if (!std::filesystem::is_directory(side, error)) return std::vector{side};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(side, error))
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  if (error) return Fail(ErrnoError(error.value(), side));
  if (files.empty()) return Fail(ErrorCode::kInvalidArgument, side + ": a folder without files");
  std::ranges::sort(files);
  return files;
}

// Whether `ratio` is beyond the limit, and not by chance.
bool IsOver(const std::optional<compare::Ratio>& ratio, double limit) {
  return ratio.has_value() && ratio->ratio > 1 + limit && ratio->IsSignificant();
}

// What --fail-over objects to.
std::string Judge(const compare::Comparison& comparison, double limit) {
  const std::string& a = comparison.a.paths.front();
  const std::string& b = comparison.b.paths.front();
  if (!comparison.pace.has_value())
    return "--fail-over: the runs can't be compared, as they launched different kernels or are too short";
  if (IsOver(comparison.pace, limit))
    return fmt::format("--fail-over: {} takes {:.1f} % more time than {} for the same work", b,
                       (comparison.pace->ratio - 1) * 100, a);
  if (IsOver(comparison.duration, limit))
    return fmt::format("--fail-over: kernels of {} take {:.1f} % longer than those of {}", b,
                       (comparison.duration->ratio - 1) * 100, a);
  return "";
}

Result<std::string> Run(CompareOptions& options, const std::vector<std::string>& a,
                        const std::vector<std::string>& b, const std::string& output) {
  compare::Options how;
  ASSIGN_OR_RETURN(how.min_change, ParsePercent("--min-change", options.min_change));
  std::optional<double> limit;
  if (!options.fail_over.empty()) {
    ASSIGN_OR_RETURN(limit, ParsePercent("--fail-over", options.fail_over));
  }
  if (!options.communication.empty()) {
    ASSIGN_OR_RETURN(options.how.communication, analyze::CommunicationKernels::With(options.communication));
  }
  ASSIGN_OR_RETURN(compare::Run before, compare::ReadRun(a, options.how));
  ASSIGN_OR_RETURN(compare::Run after, compare::ReadRun(b, options.how));
  const compare::Comparison comparison = compare::Compare(std::move(before), std::move(after), how);
  TRY(WriteReport(options.format == "json"   ? compare::ToJson(comparison)
                  : options.format == "html" ? compare::ToHtml(comparison)
                                             : compare::ToText(comparison),
                  output));
  return limit.has_value() ? Judge(comparison, *limit) : "";
}

int RunCompare(CompareOptions& options) {
  const auto a = FilesOf(options.a), b = FilesOf(options.b);
  for (const auto* files : {&a, &b})
    if (!files->has_value()) {
      PrintError("compare", files->error());
      return kExitFailed;
    }
  std::vector<std::string> both = *a;
  both.insert(both.end(), b->begin(), b->end());
  return RunOverTraces({.command = "compare",
                        .traces = std::move(both),
                        .output = options.output,
                        .work = [&](const std::string& output) { return Run(options, *a, *b, output); }});
}

}  // namespace

void AddCompare(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Find what changed between two runs of a program");
  command->footer(kCompareFooter);
  command->add_option("A", options->a, "The run before: a recording, a trace, or a folder of a job's")
      ->required();
  command->add_option("B", options->b, "The run after")->required();
  command->add_option("--format", options->format, "text, json or html")
      ->capture_default_str()
      ->check(OneOf({"text", "json", "html"}));
  command->add_option("-o,--output", options->output, "The file to write; default: standard output");
  command->add_option("--fail-over", options->fail_over,
                      "A percentage: exit with 1 if B takes more than that longer, and not by chance");
  command
      ->add_option("--min-change", options->min_change,
                   "A percentage: ignore smaller changes, which runs have for reasons outside of the program")
      ->capture_default_str();
  command->add_option("--communication", options->communication,
                      "Regular expression for names of kernels that are communication too");
  command->add_option("--threads", options->how.threads, "Reader threads; default: one per usable core")
      ->check(WholeNumber("N", 1, 1024));
  command
      ->add_option("--temp-limit", options->how.temp_limit,
                   "Space for temporary files, such as 20GB; default: all there is")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  command->add_flag("--partial", options->how.partial, "Compare the readable parts of damaged traces");
  command->callback([options, &exit_status] { exit_status = RunCompare(*options); });
}

}  // namespace gpusonde::app
