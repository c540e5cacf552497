// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <string.h>  // strverscmp, which <cstring> needn't have

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "analyze/analyzer.h"
#include "base/counted.h"
#include "command.h"
#include "compare/comparison.h"
#include "compare/trend.h"
#include "messages.h"
#include "recordings.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_query.h"
#include "traces.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kCompareFooter = R"(
A run is a recording or a trace, as those of gpusonde analyze, or a folder with those of all ranks of a job. Several
runs before and after are separated by "vs"; only then is the run-to-run variation known. Launches of one kernel
with equal shapes are compared. If one side did more work than the other, its figures are divided by that.
docs/compare.md describes the figures, the tests and the JSON.

  gpusonde compare yesterday.sonde today.sonde
  gpusonde compare before/*.sonde vs after/*.sonde
  gpusonde compare before.sqlite after.sqlite --format json | jq '.pace'
  gpusonde compare --trend nightly/ --format html -o trend.html
  gpusonde compare main.sonde branch.sonde --fail-over 5%     # exit status 1 if B takes significantly longer)";

struct CompareOptions {
  std::vector<std::string> runs;  // A B, or A… vs B…; of a trend all, or a folder
  bool trend = false;
  bool stacks = false;
  std::string format = "text";
  std::string output;
  std::string communication;
  std::optional<double> fail_over;
  double min_change = 0.01;
  analyze::Options how;
};

constexpr std::string_view kVersus = "vs";

// The runs of a comparison, each with its files.
struct Sides {
  std::vector<std::vector<std::string>> a, b;

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto* const side : {&a, &b})
      for (const auto& run : *side) files.insert(files.end(), run.begin(), run.end());
    return files;
  }
};

// The files of a run: itself, or all files of a folder.
Result<std::vector<std::string>> FilesOf(const std::string& run) {
  std::error_code error;
  if (!std::filesystem::is_directory(run, error)) return std::vector{run};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(run, error))
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  if (error) return Fail(ErrnoError(error.value(), run));
  if (files.empty()) return Fail(ErrorCode::kInvalidArgument, run + ": a folder without files");
  std::ranges::sort(files);
  return files;
}

// What is wrong with how the runs are divided into sides; empty if nothing is.
std::string WrongSides(const std::vector<std::string>& runs, bool trend) {
  const auto versus = std::ranges::find(runs, kVersus);
  if (trend) return versus == runs.end() ? "" : "a trend has no sides: leave out vs";
  if (versus == runs.end() && runs.size() != 2)
    return fmt::format("{} given: give two, or write vs between the runs before and those after",
                       Counted(static_cast<int64_t>(runs.size()), "run"));
  if (versus != runs.end() &&
      (versus == runs.begin() || versus + 1 == runs.end() || std::ranges::count(runs, kVersus) > 1))
    return "write vs once, with runs on both sides of it";
  return "";
}

Result<Sides> SidesOf(const std::vector<std::string>& runs) {
  const bool has_versus = std::ranges::find(runs, kVersus) != runs.end();
  Sides sides;
  bool is_b = false;
  for (const std::string& run : runs) {
    if (run == kVersus) {
      is_b = true;
      continue;
    }
    ASSIGN_OR_RETURN(std::vector<std::string> files, FilesOf(run));
    (is_b ? sides.b : sides.a).push_back(std::move(files));
    is_b |= !has_versus;
  }
  return sides;
}

// The runs of a trend, as side A: those given, or those in a folder, where a folder is a job's.
Result<Sides> RunsOfTrend(std::vector<std::string> runs) {
  std::error_code error;
  std::string folder;
  if (runs.size() == 1 && std::filesystem::is_directory(runs.front(), error)) {
    folder = std::exchange(runs, {}).front();
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      runs.push_back(entry.path().string());
    if (error) return Fail(ErrnoError(error.value(), folder));
    // "run2" before "run10".
    std::ranges::sort(runs, [](const std::string& a, const std::string& b) {
      return ::strverscmp(a.c_str(), b.c_str()) < 0;
    });
  }
  if (runs.size() < compare::kMinTrendRuns)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}a trend needs at least {} runs, not {}", folder.empty() ? "" : folder + ": ",
                            compare::kMinTrendRuns, runs.size()));
  Sides sides;
  for (const std::string& run : runs) {
    ASSIGN_OR_RETURN(std::vector<std::string> files, FilesOf(run));
    sides.a.push_back(std::move(files));
  }
  return sides;
}

// Whether `ratio` is beyond the limit, and not by chance.
bool IsOver(const std::optional<compare::Ratio>& ratio, double limit) {
  return ratio.has_value() && ratio->ratio > 1 + limit && ratio->significant;
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

Result<std::vector<compare::Run>> ReadRuns(const std::vector<std::vector<std::string>>& runs,
                                           const analyze::Options& options) {
  std::vector<compare::Run> read;
  for (const std::vector<std::string>& files : runs) {
    ASSIGN_OR_RETURN(compare::Run run, compare::ReadRun(files, options));
    read.push_back(std::move(run));
  }
  return read;
}

// What --fail-over objects to in a trend: that its last change was for the worse.
std::string JudgeTrend(const compare::Trend& trend, double limit) {
  if (trend.series.empty() || trend.series.front().kind != compare::SeriesKind::kPace)
    return "--fail-over: the runs can't be compared, as they launched different kernels";
  for (const compare::Series& series : trend.series) {
    if (series.kind != compare::SeriesKind::kPace && series.kind != compare::SeriesKind::kDuration) continue;
    if (series.changes.empty() || series.changes.back().ratio <= 1 + limit) continue;
    return fmt::format("--fail-over: {} {:.1f} % longer since {}",
                       series.kind == compare::SeriesKind::kPace ? "the same work takes" : "kernels take",
                       (series.changes.back().ratio - 1) * 100,
                       trend.runs[series.changes.back().run].paths.front());
  }
  return "";
}

template <class Results>
Status WriteResults(const CompareOptions& options, const Results& results, const std::string& output) {
  return WriteReport(options.format == "json"   ? ToJson(results)
                     : options.format == "html" ? ToHtml(results)
                     : options.output.empty()   ? WrappedText(ToText(results))
                                                : ToText(results),
                     output);
}

// Reads each run again, as a recording.
Status AddStacks(const CompareOptions& options, const std::vector<std::vector<std::string>>& runs, bool is_b,
                 compare::Comparison& comparison) {
  for (const std::vector<std::string>& files : runs) {
    ASSIGN_OR_RETURN(const auto store, OpenRecordings(files, {.partial = options.how.partial,
                                                              .temp_limit = options.how.temp_limit}));
    ASSIGN_OR_RETURN(const model::Profile gpu, store::ReadGpuProfile(*store, {}));
    comparison.AddProfile(gpu, is_b);
    ASSIGN_OR_RETURN(const model::Profile cpu, store::ReadProfile(*store, {}));
    if (!cpu.samples.empty()) comparison.AddProfile(cpu, is_b);
  }
  return {};
}

Result<std::string> Run(CompareOptions& options, const Sides& sides, const std::string& output) {
  compare::Options how;
  how.min_change = options.min_change;
  if (!options.communication.empty()) {
    ASSIGN_OR_RETURN(options.how.communication, analyze::CommunicationKernels::With(options.communication));
  }
  ASSIGN_OR_RETURN(std::vector<compare::Run> before, ReadRuns(sides.a, options.how));
  if (options.trend) {
    const compare::Trend trend = compare::FollowRuns(std::move(before), how);
    TRY(WriteResults(options, trend, output));
    return options.fail_over.has_value() ? JudgeTrend(trend, *options.fail_over) : "";
  }
  ASSIGN_OR_RETURN(std::vector<compare::Run> after, ReadRuns(sides.b, options.how));
  compare::Comparison comparison = compare::Compare(std::move(before), std::move(after), how);
  if (options.stacks) {
    TRY(AddStacks(options, sides.a, false, comparison));
    TRY(AddStacks(options, sides.b, true, comparison));
  }
  TRY(WriteResults(options, comparison, output));
  return options.fail_over.has_value() ? Judge(comparison, *options.fail_over) : "";
}

int RunCompare(CompareOptions& options) {
  if (options.trend && options.stacks) {
    PrintError("compare", {ErrorCode::kInvalidArgument, "--stacks compares two sides: leave out --trend"});
    return kExitUsage;
  }
  if (const std::string wrong = WrongSides(options.runs, options.trend); !wrong.empty()) {
    PrintError("compare", {ErrorCode::kInvalidArgument, wrong});
    return kExitUsage;
  }
  const auto sides = options.trend ? RunsOfTrend(options.runs) : SidesOf(options.runs);
  if (!sides.has_value()) {
    PrintError("compare", sides.error());
    return kExitFailed;
  }
  return RunOverTraces({.command = "compare",
                        .traces = sides->Files(),
                        .output = options.output,
                        .apart = options.stacks,
                        .work = [&](const std::string& output) { return Run(options, *sides, output); }});
}

}  // namespace

void AddCompare(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Find what changed between two runs of a program");
  command->footer(kCompareFooter);
  command
      ->add_option("RUN", options->runs,
                   "The run before and the one after, or several of each with vs between them: recordings, "
                   "traces, or folders with those of a job")
      ->check(Path())
      ->required();
  command->add_flag(
      "--trend", options->trend,
      "Order four or more runs, or those in a folder, by start time, and find the runs in which "
      "the time changed");
  command->add_flag("--stacks", options->stacks,
                    "Compare GPU and CPU time by operator and stack too, which reads traces twice");
  command->add_option("--format", options->format, "text, json or html")
      ->capture_default_str()
      ->check(OneOf({"text", "json", "html"}));
  command->add_option("-o,--output", options->output, "The file to write; default: standard output")
      ->check(Path());
  command
      ->add_option("--fail-over", options->fail_over,
                   "Exit with status 1 if B is significantly slower by more than this")
      ->transform(Percentage());
  command->add_option("--min-change", options->min_change, "Ignore smaller changes as noise")
      ->default_str("1%")
      ->transform(Percentage());
  command
      ->add_option("--communication", options->communication,
                   "Also count kernels whose names match this regular expression as communication")
      ->check(Regex());
  command->add_option("--threads", options->how.threads, "Reader threads; default: one per usable core")
      ->check(WholeNumber("N", 1, 1024));
  command
      ->add_option("--temp-limit", options->how.temp_limit,
                   "Disk space for temporary files, such as 20GB; default: all free space")
      ->transform(Size());
  command->add_flag("--partial", options->how.partial, "Compare the readable parts of damaged traces");
  command->callback([options, &exit_status] { exit_status = RunCompare(*options); });
}

}  // namespace gpusonde::app
