// SPDX-License-Identifier: Apache-2.0
#include "recordings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/counted.h"
#include "base/fd.h"
#include "base/temporary_folder.h"
#include "convert/import.h"
#include "model/enums.h"
#include "store/queries/profile_query.h"
#include "store/recordings/recording.h"
#include "store/rollups/recorded_sums.h"
#include "values.h"

namespace gpusonde::app {
Result<std::vector<std::string>> ImportIntoRecordings(const std::vector<std::string>& files,
                                                      const convert::ImportOptions& options) {
  TRY(convert::RefuseRepeated(files));
  std::vector<std::string> recordings, traces;
  std::error_code failed;
  for (const std::string& file : files) {
    // Of files that are neither, the importer knows best what they are and what makes a trace of them; of
    // folders and empty files the store says it.
    const bool is_trace = !IsRecording(file) && std::filesystem::is_regular_file(file, failed) &&
                          std::filesystem::file_size(file, failed) > 0;
    (is_trace ? traces : recordings).push_back(file);
  }
  if (traces.empty()) return recordings;
  const std::string imported = FolderForLargeFiles() + "/imported.sonde";
  TRY(convert::ImportTraces(traces, options, imported));
  recordings.push_back(imported);
  return recordings;
}

Result<std::unique_ptr<store::Store>> OpenRecordings(const std::vector<std::string>& files,
                                                     const convert::ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> recordings, ImportIntoRecordings(files, options));
  ASSIGN_OR_RETURN(auto store, store::OpenRecordings(recordings));
  return store::UseRecordedSums(std::move(store), recordings.size());
}

std::string TitleOf(const std::vector<std::string>& files) {
  const std::string first = std::filesystem::path(files.front()).filename().string();
  return files.size() == 1 ? first : fmt::format("{} and {} more", first, files.size() - 1);
}

Result<std::vector<std::string>> NoticesOf(store::Store& store) {
  ASSIGN_OR_RETURN(const store::Overview overview, store::ReadOverview(store));
  std::vector<std::string> notices, traces;
  for (const store::Overview::SourceInfo& source : overview.sources) {
    if (source.kind == model::EnumNames<model::SourceKind>::Name(model::SourceKind::kImport))
      traces.push_back(source.command);
    else if (!source.ended_ns.has_value())
      notices.push_back(
          fmt::format("The recording on {} was cut short: gpusonde was killed while it ran. "
                      "It holds everything up to its last second.",
                      source.host));
  }
  if (!traces.empty())
    notices.push_back(fmt::format("{}: GPU work, calls and ranges, but no CPU samples.",
                                  traces.size() == 1
                                      ? traces.front() + " is a trace"
                                      : Counted(static_cast<int64_t>(traces.size()), "trace")));
  return notices;
}

void AddTraceOptions(CLI::App& command, convert::ImportOptions& traces) {
  command
      .add_option("--temp-limit", traces.temp_limit,
                  "Disk space for imported traces, such as 20GB; default: all free space")
      ->transform(Size());
  command.add_flag("--partial", traces.partial, "Read the readable part of damaged traces");
}

bool IsRecording(const std::string& file) {
  constexpr std::string_view kMagic = "DUCK";
  constexpr off_t kMagicOffset = 8;
  const Result<Fd> opened = Open(file, O_RDONLY | O_NONBLOCK);  // a FIFO without a writer would block
  std::array<char, kMagic.size()> begin{};
  return opened.has_value() && ::pread(opened->get(), begin.data(), begin.size(), kMagicOffset) > 0 &&
         std::string_view(begin.data(), begin.size()) == kMagic;
}

}  // namespace gpusonde::app
