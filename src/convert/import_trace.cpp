// SPDX-License-Identifier: Apache-2.0
#include "convert/import_trace.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "base/id128.h"
#include "convert/rows.h"
#include "convert/trace_rows.h"

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

}  // namespace

Result<importers::TraceInfo> ReadInfo(const std::string& path, const ImportOptions& options) {
  ASSIGN_OR_RETURN(const auto trace, Open(path, options));
  if (trace->info().format != TraceFormat::kKinetoJson) return trace->info();
  importers::Shard shard;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, trace->Next(shard));
    if (!more) return trace->info();
  }
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

}  // namespace gpusonde::convert
