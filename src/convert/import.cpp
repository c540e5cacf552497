// SPDX-License-Identifier: Apache-2.0
#include "convert/import.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "analyze/rank_names.h"
#include "analyze/temporary_file.h"
#include "convert/import_trace.h"
#include "importers/trace.h"
#include "replay/replay.h"
#include "store/recordings/recording.h"

namespace gpusonde::convert {
namespace {

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
