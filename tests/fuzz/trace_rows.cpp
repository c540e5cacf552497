// SPDX-License-Identifier: Apache-2.0
// Traces of any format, read in detail: the rows that `gpusonde import` stores.
#include "convert/trace_rows.h"

#include <cstdlib>
#include <string>

#include "fuzzed_file.h"
#include "importers/trace.h"
#include "model/batch.h"
#include "model/schema.h"

namespace gpusonde::convert {
namespace {

// What surrounds the events of a JSON trace is known when all of it has been split.
Result<importers::TraceInfo> ReadInfo(const std::string& path, const importers::OpenOptions& options) {
  ASSIGN_OR_RETURN(const auto trace, importers::OpenTrace(path, options));
  importers::Shard shard;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, trace->Next(shard));
    if (!more) return trace->info();
  }
}

Status Convert(const std::string& path, const importers::OpenOptions& options) {
  ASSIGN_OR_RETURN(const importers::TraceInfo info, ReadInfo(path, options));
  if (info.format == importers::TraceFormat::kSonde) return {};
  ASSIGN_OR_RETURN(const auto trace, importers::OpenTrace(path, options));
  Rows rows([](const model::Batch& batch) -> Status {
    // The store would refuse them.
    if (!model::Validate(batch).has_value() || !model::CheckAgainstSchema(batch).has_value()) std::abort();
    return {};
  });
  const bool is_json = info.format == importers::TraceFormat::kKinetoJson;
  TraceRows events({.source = {1, 1}, .file_name = "trace", .one_process = is_json}, info, rows);
  ASSIGN_OR_RETURN(const auto reader, trace->MakeReader(events));
  importers::Shard shard;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, trace->Next(shard));
    if (!more) return events.Finish();
    if (const Status read = reader->Read(shard); !read.has_value() && !options.partial) return read;
    TRY(events.status());
  }
}

}  // namespace
}  // namespace gpusonde::convert

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static FuzzedFile file;
  file.Fill({data, size});
  for (const bool partial : {false, true}) {
    const gpusonde::Status done =
        gpusonde::convert::Convert(file.path(), {.partial = partial, .detail = true});
    if (!done.has_value() && done.error().message.empty()) std::abort();  // an error needs a message
  }
  return 0;
}
