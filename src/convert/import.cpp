// SPDX-License-Identifier: Apache-2.0
#include "convert/import.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "analyze/rank_names.h"
#include "analyze/temporary_file.h"
#include "base/id128.h"
#include "convert/rows.h"
#include "convert/trace_rows.h"
#include "importers/trace.h"
#include "replay/replay.h"
#include "store/recordings/recording.h"

namespace gpusonde::convert {
namespace {

using importers::TraceFormat;

Result<std::unique_ptr<importers::Trace>> Open(const std::string& path, const ImportOptions& options) {
  ASSIGN_OR_RETURN(auto trace, importers::OpenTrace(path, {.partial = options.partial,
                                                           .detail = true,
                                                           .gpu_only = options.gpu_only,
                                                           .temp_limit = options.temp_limit}));
  if (trace->info().format == TraceFormat::kSonde)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{0} is a recording already: `gpusonde view {0}` shows it, and other commands take "
                    "it together with traces",
                    path));
  if (trace->info().format == TraceFormat::kNcuCsv && !options.metrics)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{0} is an Nsight Compute CSV: its kernels ran in isolation and have no times; "
                            "`gpusonde analyze {0}` and `query` read it",
                            path));
  return trace;
}

// The same for the same file, so that importing it again into another recording gives the same ids.
Id128 SourceOf(const std::string& path) {
  struct stat status{};
  static_cast<void>(::stat(path.c_str(), &status));
  std::error_code failed;
  return IdHasher("trace")
      .Add(std::filesystem::absolute(path, failed).string())
      .Add(static_cast<uint64_t>(status.st_size))
      .Add(static_cast<uint64_t>(status.st_mtim.tv_sec))
      .Finish();
}

// Whether the trace begins where its clock does is only known once all of it has been split into shards: what
// surrounds the events of a JSON trace may follow them.
Result<importers::TraceInfo> ReadInfo(const std::string& path, const ImportOptions& options) {
  ASSIGN_OR_RETURN(const auto trace, Open(path, options));
  if (trace->info().format != TraceFormat::kKinetoJson) return trace->info();
  importers::Shard shard;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, trace->Next(shard));
    if (!more) return trace->info();
  }
}

// What the traces say of themselves; ranks as `analyze` numbers them, by the files' names if no trace says
// its own.
Result<std::vector<importers::TraceInfo>> ReadInfos(const std::vector<std::string>& traces,
                                                    const ImportOptions& options) {
  std::vector<importers::TraceInfo> infos;
  for (const std::string& trace : traces) {
    ASSIGN_OR_RETURN(importers::TraceInfo info, ReadInfo(trace, options));
    infos.push_back(std::move(info));
  }
  const auto says_its_own = [](const importers::TraceInfo& info) { return info.rank.has_value(); };
  const auto numbers = analyze::RanksInNames(traces);
  if (!numbers.has_value() || std::ranges::any_of(infos, says_its_own)) return infos;
  for (size_t i = 0; i < infos.size(); ++i) infos[i].rank = (*numbers)[i];
  return infos;
}

Result<ImportSummary::Trace> ImportTrace(const std::string& path, const importers::TraceInfo& info,
                                         const ImportOptions& options, const store::BatchSink& sink) {
  ASSIGN_OR_RETURN(const auto trace, Open(path, options));
  Rows rows(sink);
  const bool names_processes = info.format == TraceFormat::kNsysSqlite || info.format == TraceFormat::kNcuCsv;
  TraceRows events({.source = SourceOf(path),
                    .file_name = std::filesystem::path(path).filename().string(),
                    .one_process = !names_processes},
                   info, rows);
  ASSIGN_OR_RETURN(const auto reader, trace->MakeReader(events));
  bool skipped = false;
  importers::Shard shard;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, trace->Next(shard));
    if (!more) break;
    const Status read = reader->Read(shard);
    TRY(events.status());
    if (!read.has_value() && !options.partial) return Fail(read.error());
    skipped |= !read.has_value();
  }
  TRY(events.Finish());
  return ImportSummary::Trace{.path = path,
                              .format = std::string(importers::Name(info.format)),
                              .events = events.events(),
                              .gpu_events = events.gpu_events(),
                              .dropped = events.dropped(),
                              .truncated = info.truncated || skipped};
}

// Appends the rows of steps and incidents, which recordings of our own have, too.
Status AppendDiagnosis(store::Store& store) {
  ASSIGN_OR_RETURN(diagnose::Diagnosis diagnosis, replay::Diagnose(store, {}));
  return store.Append(diagnosis.DrainRows());
}

}  // namespace

Status RefuseRepeated(const std::vector<std::string>& files) {
  std::set<std::string> seen;
  for (const std::string& file : files) {
    std::error_code failed;
    if (!seen.insert(std::filesystem::weakly_canonical(file, failed).string()).second)
      return Fail(ErrorCode::kInvalidArgument, file + " is named twice");
  }
  return {};
}

Result<ImportSummary> ImportTraces(const std::vector<std::string>& traces, const ImportOptions& options,
                                   const std::string& path) {
  TRY(RefuseRepeated(traces));
  // Sorted spans take 48 bytes of an event, which has at least as many in every trace.
  uint64_t bytes = 0;
  for (const std::string& trace : traces) {
    std::error_code failed;
    if (const auto size = std::filesystem::file_size(trace, failed); !failed) bytes += size;
  }
  analyze::TemporaryFile::LimitSpace(options.temp_limit, bytes);
  ASSIGN_OR_RETURN(const std::vector<importers::TraceInfo> infos, ReadInfos(traces, options));
  ImportSummary summary;
  const auto import_all = [&](const store::BatchSink& sink) -> Status {
    for (size_t i = 0; i < traces.size(); ++i) {
      ASSIGN_OR_RETURN(auto imported, ImportTrace(traces[i], infos[i], options, sink));
      summary.traces.push_back(std::move(imported));
    }
    return {};
  };
  const store::RecordingSize size = {.expected_bytes = bytes, .max_bytes = options.temp_limit};
  const bool diagnosed = options.diagnose && !options.gpu_only;
  TRY(store::WriteRecording(path, size, import_all, diagnosed ? AppendDiagnosis : nullptr));
  return summary;
}

}  // namespace gpusonde::convert
