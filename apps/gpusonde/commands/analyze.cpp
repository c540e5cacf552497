// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/scale/crew.h"
#include "analyze/scale/crew_job.h"
#include "analyze/scale/part_file.h"
#include "base/heap.h"
#include "base/terminal.h"
#include "base/text.h"
#include "command.h"
#include "messages.h"
#include "traces.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kAnalyzeFooter = R"(
Traces are gpusonde's own recordings, Nsight Systems SQLite exports, nvprof databases (not tested with a real one),
PyTorch profiler (Kineto) JSON and Nsight Compute CSV, the latter two also compressed with gzip or zstd. The
content of a file decides its format. docs/analyze.md describes the findings, docs/analyze-json.md the JSON.

  gpusonde analyze report.sqlite
  gpusonde analyze rank*.json.gz --format html -o report.html
  gpusonde analyze rank*.json.gz --format json | jq '.kernels[:3]'
  ncu --csv --page raw ./train > ncu.csv; gpusonde analyze ncu.csv
  mpirun -n 16 gpusonde analyze rank*.json.gz --align collectives
  gpusonde analyze --part 0/2 -o p0 big.sqlite
  gpusonde analyze --part 1/2 -o p1 big.sqlite
  gpusonde analyze --merge p0 p1)";

struct AnalyzeOptions {
  std::vector<std::string> traces;
  std::string format = "text";
  std::string output;
  std::string rank_from;
  std::string communication;
  std::string align = "none";
  std::string part;
  std::vector<std::string> merge;
  analyze::Options how;
};

struct Fraction {
  uint64_t index = 0;
  uint64_t count = 1;
};

// "0/4": the first of four parts.
std::optional<Fraction> ParseFraction(std::string_view text) {
  Fraction fraction;
  const char* const end = text.data() + text.size();
  const auto [slash, bad_index] = std::from_chars(text.data(), end, fraction.index);
  if (bad_index == std::errc() && slash != end && *slash == '/') {
    const auto [rest, bad_count] = std::from_chars(slash + 1, end, fraction.count);
    if (bad_count == std::errc() && rest == end && fraction.index < fraction.count) return fraction;
  }
  return std::nullopt;
}

std::string CheckPart(const std::string& text) {
  return ParseFraction(text).has_value() ? "" : fmt::format("'{}' is not i/N with i from 0 to N-1", text);
}

// The terminal's; else $COLUMNS, which a script may set, such as for a pager.
size_t WidthOfOutput() {
  constexpr size_t kMinWidth = 40, kMaxWidth = 1'000;
  if (const size_t width = Terminal::Of(STDOUT_FILENO).width; width > 0) return width;
  const char* const columns = std::getenv("COLUMNS");
  const std::optional<size_t> width = ParseNumber<size_t>(columns == nullptr ? "" : columns);
  return width.has_value() ? std::clamp(*width, kMinWidth, kMaxWidth) : analyze::kTextWidth;
}

std::string TextOf(const analyze::Report& report, const AnalyzeOptions& options) {
  if (options.format == "html") return analyze::ToHtml(report);
  if (options.format == "json") return analyze::ToJson(report);
  if (!options.output.empty()) return analyze::ToText(report);
  return WrappedText(analyze::ToText(report, WidthOfOutput()));
}

// Runs as one rank among the processes that mpirun started. Only rank 0 writes, errors included.
Status RunTogether(const AnalyzeOptions& options, const std::string& output) {
  ASSIGN_OR_RETURN(const auto crew, analyze::Crew::Load());
  bool others_wait = false;
  auto report = analyze::AnalyzeTogether(*crew, options.traces, options.how, others_wait);
  Status done = report.has_value() ? Status() : std::unexpected(report.error());
  if (report.has_value() && report->has_value()) done = WriteReport(TextOf(**report, options), output);
  if (others_wait) {
    PrintError("analyze", Error(done.error()).With(fmt::format("rank {}", crew->rank())));
    crew->Abort();
  }
  if (done.has_value() || done.error().message.empty()) return done;
  // Prints before the crew's destructor waits for all ranks: once another rank has failed, mpirun kills this
  // one.
  PrintError("analyze", done.error());
  return Fail(done.error().code, "");
}

Status Run(AnalyzeOptions& options, const std::string& output) {
  if (options.align == "collectives") options.how.alignment = analyze::Alignment::kCollectives;
  if (!options.rank_from.empty()) {
    try {
      options.how.rank_from.emplace(options.rank_from, std::regex::ECMAScript);
    } catch (const std::regex_error& error) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("--rank-from: {}", error.what()));
    }
  }
  if (!options.communication.empty()) {
    ASSIGN_OR_RETURN(options.how.communication, analyze::CommunicationKernels::With(options.communication));
  }
  if (!options.part.empty()) {
    const Fraction part = ParseFraction(options.part).value_or(Fraction());  // CheckPart has accepted it
    return analyze::AnalyzePart(options.traces, options.how, part.index, part.count, output);
  }
  if (options.merge.empty() && analyze::Crew::IsLaunched()) return RunTogether(options, output);
  ASSIGN_OR_RETURN(const analyze::Report report, options.merge.empty()
                                                     ? analyze::Analyze(options.traces, options.how)
                                                     : analyze::MergeParts(options.merge, options.how));
  return WriteReport(TextOf(report, options), output);
}

int RunAnalyze(AnalyzeOptions& options) {
  KeepMemory();
  const TraceWork work{.command = "analyze",
                       .traces = options.traces,
                       .output = options.output,
                       .work = [&](const std::string& output) -> Result<std::string> {
                         TRY(Run(options, output));
                         return std::string();
                       }};
  // MPI ranks communicate with each other, and a part is written by its own code.
  const bool here = analyze::Crew::IsLaunched() || !options.part.empty();
  return here ? RunOverTracesHere(work) : RunOverTraces(work);
}

}  // namespace

void AddAnalyze(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command = app.add_subcommand("analyze", "Find what took the time in GPU traces, and give advice");
  command->footer(kAnalyzeFooter);
  CLI::Option* const traces =
      command->add_option("TRACE", options->traces, "Traces to analyse together")->check(Path());
  command->add_option("--format", options->format, "text, json or html")
      ->capture_default_str()
      ->check(OneOf({"text", "json", "html"}));
  CLI::Option* const output =
      command->add_option("-o,--output", options->output, "The file to write; default: standard output")
          ->check(Path());
  CLI::Option* const part =
      command
          ->add_option("--part", options->part,
                       "Analyse only the i-th of N parts, from 0 on, and write it to -o")
          ->check(CLI::Validator(CheckPart, "i/N"));
  CLI::Option* const merge =
      command->add_option("--merge", options->merge, "Make one report from the parts that --part wrote");
  part->needs(traces)->needs(output)->excludes(merge);
  merge->excludes(traces);
  command->add_option("--threads", options->how.threads, "Reader threads; default: one per usable core")
      ->check(WholeNumber("N", 1, 1024));
  command
      ->add_option("--rank-from", options->rank_from,
                   "Regular expression that finds the rank in a file's name; its first group is the number")
      ->check(Regex());
  command->add_option(
      "--steps", options->how.steps,
      "Prefix of the NVTX ranges that mark steps; default: ProfilerStep#, or ranges that repeat");
  command
      ->add_option("--communication", options->communication,
                   "Also count kernels whose names match this regular expression as communication")
      ->check(Regex());
  command
      ->add_option("--align", options->align,
                   "How to align the clocks of several traces: none, or by the ends of collectives")
      ->capture_default_str()
      ->check(OneOf({"none", "collectives"}));
  command
      ->add_option("--temp-limit", options->how.temp_limit,
                   "Disk space for temporary files, such as 20GB; default: all free space")
      ->transform(Size());
  CLI::Option* const operators = command->add_flag(
      "--operators", options->how.operators,
      "GPU time by operator, module and range that launched it; reads the traces a second time");
  CLI::Option* const critical_path =
      command->add_flag("--critical-path", options->how.critical_path,
                        "Critical paths of typical and slow steps; reads the traces a second time");
  CLI::Option* const waves = command->add_flag("--waves", options->how.waves,
                                               "Time lost in partially filled last waves of thread blocks "
                                               "(tail effect); reads the traces a second time");
  CLI::Option* const sequences =
      command->add_flag("--sequences", options->how.sequences,
                        "Sequences of kernels that repeat on a stream, and the gaps in them");
  command
      ->add_flag("--kernel-summary", options->how.kernel_summary,
                 "Only count and time each kernel: about five times as fast")
      ->excludes(operators)
      ->excludes(critical_path)
      ->excludes(waves)
      ->excludes(sequences);
  command->add_flag("--partial", options->how.partial, "Analyse the readable part of damaged traces");
  command->callback([options, &exit_status] {
    if (options->traces.empty() && options->merge.empty()) throw CLI::RequiredError("TRACE");
    exit_status = RunAnalyze(*options);
  });
}

}  // namespace gpusonde::app
