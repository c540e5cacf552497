// SPDX-License-Identifier: Apache-2.0
#include "convert/import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/counted.h"
#include "base/disk.h"
#include "base/fd.h"
#include "base/temporary_folder.h"
#include "command.h"
#include "messages.h"
#include "reader_process.h"
#include "store/recordings/recording.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kImportFooter = R"(
Traces are Nsight Systems SQLite exports, nvprof databases, PyTorch profiler (Kineto) JSON and Nsight Compute CSV,
the latter two also compressed with gzip or zstd. Several traces, such as those of a job's ranks, become processes
of one recording. docs/import.md describes the conversion. `view`, `query`, `diagnose`, `export`, `usage` and `mcp`
read traces directly too, but only `query` those of Nsight Compute, whose metrics have no times.

  gpusonde import trace.json.gz -o run.sonde
  gpusonde import rank*.json.gz -o job.sonde; gpusonde view job.sonde)";

constexpr const char* kNoGpuEvents =
    "; no GPU work; to record it, use ProfilerActivity.CUDA in PyTorch's profiler, or --trace=cuda in Nsight "
    "Systems";

struct ImportCommand {
  std::vector<std::string> traces;
  std::string output;
  convert::ImportOptions how{.metrics = true};
};

void PrintSummary(const convert::ImportSummary& summary) {
  for (const convert::ImportSummary::Trace& trace : summary.traces)
    PrintNotice("import",
                fmt::format("{}: {} ({}){}{}{}", trace.path, Counted(trace.events, "event"), trace.format,
                            trace.gpu_events == 0 ? kNoGpuEvents : "",
                            trace.dropped > 0 ? fmt::format("; {} could not be read", trace.dropped) : "",
                            trace.truncated ? "; the rest of the trace is missing or damaged" : ""));
}

int Import(const ImportCommand& options) {
  const std::string made = FolderForLargeFiles() + "/imported.sonde";
  const auto summary = convert::ImportTraces(options.traces, options.how, made);
  if (summary.has_value()) {
    PrintSummary(*summary);
    return kExitOk;
  }
  Error error = summary.error();
  // The user knows the output and not the file that becomes it, or DuckDB's beside that.
  if (const size_t at = error.message.find(made); at != std::string::npos) {
    const size_t end = std::min(error.message.find_first_of(": ", at + made.size()), error.message.size());
    error.message.replace(at, end - at, options.output);
  }
  PrintError("import", error);
  return kExitFailed;
}

// The reader writes into a folder beside the output, which is then renamed.
int ImportApart(const ImportCommand& options) {
  const auto failed = [](const Error& error) {
    PrintError("import", error);
    return kExitFailed;
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(options.output, ignored))
    return failed({ErrorCode::kInvalidArgument, options.output + " is a folder; give a file name"});
  if (const Status named = store::CheckRecordingName(options.output); !named.has_value())
    return failed(named.error());
  if (const Status free = CheckReplaceable(options.output); !free.has_value()) return failed(free.error());
  if (const Status other = CheckIsNoInput(options.output, options.traces); !other.has_value())
    return failed(other.error());
  if (const Status there = CheckFolderOf(options.output); !there.has_value()) return failed(there.error());
  return RunReader({.command = "import",
                    .files = options.traces,
                    .temporary_in = FolderOf(options.output),
                    .work = [&] { return Import(options); },
                    .on_success =
                        [&](const std::string& made_in) {
                          const std::string made = made_in + "/imported.sonde";
                          if (std::rename(made.c_str(), options.output.c_str()) != 0)
                            return failed(ErrnoError(errno, "rename to " + options.output));
                          return kExitOk;
                        }});
}

}  // namespace

void AddImport(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<ImportCommand>();
  CLI::App* command = app.add_subcommand("import", "Make a recording from traces of other profilers");
  command->footer(kImportFooter);
  command->add_option("TRACE", options->traces, "Traces to import together")->check(Path())->required();
  command->add_option("-o,--output", options->output, "The recording to write")->check(Path())->required();
  command->add_flag("--partial", options->how.partial, "Import the readable part of damaged traces");
  command
      ->add_option("--temp-limit", options->how.temp_limit,
                   "Disk space for temporary files and the recording, such as 20GB; default: all free space")
      ->transform(Size());
  command->callback([options, &exit_status] { exit_status = ImportApart(*options); });
}

}  // namespace gpusonde::app
