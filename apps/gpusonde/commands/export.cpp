// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "command.h"
#include "export_tables.h"
#include "export_timeline.h"
#include "exporters/exporter.h"
#include "exporters/timeline/timeline_format.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "selection_flags.h"
#include "store/queries/gpu_query.h"
#include "store/queries/process_facts.h"
#include "store/queries/profile_query.h"
#include "store/recordings/recording.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr std::string_view kStandardOutput = "-";
constexpr std::string_view kParquet = "parquet";
constexpr std::string_view kParquetMeaning =
    "a folder with a file per table, for DuckDB, pandas, Polars and Spark";

struct ExportOptions {
  std::vector<std::string> files;
  std::string format;
  std::string output;  // empty: OutputOf decides
  std::string type = "cpu";
  std::string value;  // empty: samples of CPU time, us of GPU time
  bool per_thread = false;
  SelectionFlags selection;
  convert::ImportOptions reading;  // of traces
};

// A format with what differs between those of profiles and those of timelines.
struct Target {
  std::string_view extension;
  bool line_based;  // text for pipes and terminals
  // Writes to the descriptor, and returns what was written, for people.
  std::function<Result<std::string>(store::Store& store, int to)> write;
};

// The output path: the given one, else standard output for line-based text and a file beside the recording.
std::string OutputOf(const ExportOptions& options, const Target& target) {
  if (!options.output.empty()) return options.output;
  if (target.line_based) return std::string(kStandardOutput);
  std::filesystem::path path(options.files.front());
  path.replace_extension(target.extension);
  return path.string();
}

std::string Describe(const model::Profile& profile, bool gpu, bool off_cpu) {
  int64_t samples = 0;
  int64_t time_ns = 0;
  for (const model::Profile::Sample& sample : profile.samples) {
    samples += sample.count;
    time_ns += sample.weight_ns;
  }
  const std::string estimated =
      profile.one_second_in == 1
          ? ""
          : fmt::format(", estimated from the samples of one second in {}", profile.one_second_in);
  return fmt::format("{} {}, {:.3f} s of {} time{}", samples,
                     gpu       ? "kernels, copies and sets"
                     : off_cpu ? "waits"
                               : "samples",
                     static_cast<double>(time_ns) / static_cast<double>(kNanosPerSecond),
                     gpu       ? "GPU"
                     : off_cpu ? "waiting"
                               : "CPU",
                     estimated);
}

// Of a selection that is empty: what times there are, if one was chosen.
Result<std::string> TimesOf(store::Store& store, const SelectionFlags& selection) {
  if (selection.from.empty() && selection.to.empty()) return "";
  ASSIGN_OR_RETURN(const store::Overview overview, store::ReadOverview(store));
  if (!overview.from_ns.has_value() || !overview.to_ns.has_value()) return "";
  return fmt::format("; the recording is of {} to {}", FormatUtc(*overview.from_ns),
                     FormatUtc(*overview.to_ns));
}

Result<std::string> ExportProfile(store::Store& store, const ExportOptions& options,
                                  const exporters::Exporter& exporter, int to) {
  ASSIGN_OR_RETURN(model::Selection selection, Select(store, options.selection));
  const bool gpu = options.type == "gpu";
  selection.off_cpu = options.type == "offcpu";
  ASSIGN_OR_RETURN(const model::Profile profile,
                   gpu ? store::ReadGpuProfile(store, selection) : store::ReadProfile(store, selection));
  if (profile.samples.empty()) {
    ASSIGN_OR_RETURN(const std::string times, TimesOf(store, options.selection));
    return Fail(
        ErrorCode::kNotFound,
        (gpu                 ? "no GPU work in this selection"
         : selection.off_cpu ? "no samples in this selection"
                             : "no CPU samples in this selection; --type gpu exports GPU work on the stacks "
                               "that launched it") +
            times);
  }
  exporters::Options how{.title = TitleOf(options.files),
                         .value = options.value == "us" || (options.value.empty() && options.type != "cpu")
                                      ? exporters::Value::kMicroseconds
                                      : exporters::Value::kSamples,
                         .per_thread = options.per_thread};
  if (exporter.process_facts) {
    ASSIGN_OR_RETURN(how.processes, store::ReadProcessFacts(store, profile));
  }
  ASSIGN_OR_RETURN(const std::string content, exporter.render(profile, how));
  TRY(WriteAll(to, std::as_bytes(std::span(content))));
  return Describe(profile, gpu, selection.off_cpu);
}

Target TargetOf(const ExportOptions& options) {
  // Written by ExportTables.
  if (options.format == kParquet) return {.extension = ".parquet", .line_based = false, .write = {}};
  if (const exporters::TimelineFormat* format = exporters::FindTimelineFormat(options.format))
    return {.extension = format->extension,
            .line_based = false,
            .write = [&options, format](store::Store& store, int to) {
              return ExportTimeline(store, options.selection, *format, TitleOf(options.files), to);
            }};
  const exporters::Exporter& exporter = *exporters::FindExporter(options.format);
  return {.extension = exporter.extension,
          .line_based = exporter.line_based,
          .write = [&options, &exporter](store::Store& store, int to) {
            return ExportProfile(store, options, exporter, to);
          }};
}

// Writes the export to `to`, the file `output`, and unless that is standard output, reports its contents to
// the parent process.
Status Export(const ExportOptions& options, const Target& target, int to, const std::string& output) {
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(options.files, options.reading));
  const bool to_file = to != STDOUT_FILENO;
  Result<std::string> holds = target.write(*store, to);
  if (!holds.has_value() && holds.error().code == ErrorCode::kOutOfSpace)
    return Fail(std::move(holds).error().With(to_file ? output : "standard output"));
  if (!holds.has_value()) return std::unexpected(holds.error());
  if (to_file) ReportToParent(*holds);
  return {};
}

int ExportStatus(const Status& done) {
  const int status = ExitStatusOf("export", done);
  return status != kExitOk && done.error().code == ErrorCode::kInvalidArgument ? kExitUsage : status;
}

int ExportApart(const ExportOptions& options, const Target& target, const std::string& output) {
  const auto work = [&](int to) { return ExportStatus(Export(options, target, to, output)); };
  ReaderProcess reader{.command = "export", .files = options.files};
  if (output == kStandardOutput) {
    reader.work = [&] { return work(STDOUT_FILENO); };
    return RunReader(reader);
  }
  std::string holds;
  reader.on_message = [&](std::string_view message) { holds = message; };
  const int status = RunReaderInto(output, reader, work);
  if (status == kExitOk) PrintNotice("export", fmt::format("{}: {}", output, holds));
  return status;
}

void CheckProfileFlags(const ExportOptions& options) {
  if (options.type == "gpu" && options.selection.while_gpu_idle)
    throw CLI::ValidationError("an idle GPU has no GPU time; use --while-gpu-idle with --type cpu");
  // A wait is stored with the time of its end, which doesn't say what the GPU did during the wait.
  if (options.type == "offcpu" && options.selection.while_gpu_idle)
    throw CLI::ValidationError("use --while-gpu-idle with --type cpu");
}

// Timelines and tables have whole processes, and no sums of samples.
void CheckFlagsWithoutProfile(const ExportOptions& options, bool type_given) {
  const SelectionFlags& selection = options.selection;
  if (type_given || selection.tid != 0 || !selection.filter.empty() || selection.while_gpu_idle)
    throw CLI::ValidationError("--from, --to, --pid, --device and --stream select for --format " +
                               options.format +
                               "; --type, --tid, --filter and --while-gpu-idle select samples of profiles");
}

struct Given {
  bool type = false;
  bool text_flags = false;
};

int Run(const ExportOptions& options, const Given& given) {
  if (exporters::FindExporter(options.format) != nullptr)
    CheckProfileFlags(options);
  else
    CheckFlagsWithoutProfile(options, given.type);
  const Target target = TargetOf(options);
  const std::string output = OutputOf(options, target);
  if (given.text_flags && !target.line_based)
    throw CLI::ValidationError("use --value and --per-thread with --format folded; " + options.format +
                               " always holds samples and time of each thread");
  if (options.files.size() > 1 && options.output.empty() && !target.line_based)
    throw CLI::ValidationError("several recordings are written to one file; name it with -o");
  if (output == kStandardOutput && !target.line_based && ::isatty(STDOUT_FILENO) != 0)
    throw CLI::ValidationError(options.format + " is not for a terminal; give -o FILE or a pipe");
  if (options.format != kParquet) return ExportApart(options, target, output);
  if (output == kStandardOutput) throw CLI::ValidationError("parquet is a folder of files; give -o FOLDER");
  return ExportTables(options.files, options.reading, options.selection, output);
}

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const exporters::Exporter* exporter : exporters::AllExporters()) names.emplace_back(exporter->name);
  for (const exporters::TimelineFormat* format : exporters::AllTimelineFormats())
    names.emplace_back(format->name);
  names.emplace_back(kParquet);
  return names;
}

std::string Footer() {
  std::string text = "Formats:\n";
  const auto add = [&text](const auto* format) {
    text += fmt::format("  {:<12}{} (*{})\n", format->name, format->meaning, format->extension);
  };
  for (const exporters::Exporter* exporter : exporters::AllExporters()) add(exporter);
  for (const exporters::TimelineFormat* format : exporters::AllTimelineFormats()) add(format);
  text += fmt::format("  {:<12}{} (*.{})\n", kParquet, kParquetMeaning, kParquet);
  return text +
         "\nExamples:\n"
         "  gpusonde export run.sonde --format folded | flamegraph.pl > run.svg\n"
         "  gpusonde export run.sonde --format pprof --from 5 --to 10     # makes run.pb.gz\n"
         "  gpusonde export run.sonde --format otlp --type gpu            # makes run.otlp.gz\n"
         "  gpusonde export run.sonde --format folded --type gpu | flamegraph.pl > gpu.svg\n"
         "  gpusonde export run.sonde --format speedscope --filter inflate -o inflate.json\n"
         "  gpusonde export run.sonde --format chrome --from 5 --to 10    # makes run.trace.json\n"
         "  gpusonde export run.sonde --format parquet -o tables";
}

}  // namespace

void AddExport(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Write recordings and traces in the formats of other tools");
  command->footer(Footer());
  command->add_option("FILE", options->files, "Recordings or traces to merge and export")
      ->check(Path())
      ->required();
  command->add_option("--format", options->format, "The format to write")
      ->required()
      ->check(OneOf(FormatNames()));
  command
      ->add_option("-o,--output", options->output,
                   "The file to write (for parquet a new folder), or - for standard output; folded stacks "
                   "go there by default, the "
                   "others to a file beside the recording")
      ->check(Path());
  CLI::Option* type =
      command
          ->add_option(
              "--type", options->type,
              "cpu: samples; gpu: kernels and copies on the stacks that launched them; offcpu: waits on "
              "the stacks that waited")
          ->capture_default_str()
          ->check(OneOf({"cpu", "gpu", "offcpu"}));
  CLI::Option* value =
      command
          ->add_option("--value", options->value,
                       "Unit of folded stacks: samples (for GPU time: kernels) or us; default: samples, "
                       "us for GPU time")
          ->check(OneOf({"samples", "us"}));
  CLI::Option* per_thread = command->add_flag("--per-thread", options->per_thread,
                                              "Separate folded stacks per thread, with pid and tid");
  AddSelectionFlags(*command, options->selection);
  AddTraceOptions(*command, options->reading);
  command->callback([options, type, value, per_thread, &exit_status] {
    exit_status = Run(
        *options, {.type = type->count() > 0, .text_flags = value->count() > 0 || per_thread->count() > 0});
  });
}

}  // namespace gpusonde::app
