// SPDX-License-Identifier: Apache-2.0
#include "export_tables.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/counted.h"
#include "base/disk.h"
#include "base/temporary_folder.h"
#include "command.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "store/recordings/parquet.h"

namespace gpusonde::app {
namespace {

constexpr std::string_view kTables = "/tables";

// In the reader; reports what was written.
Status WriteTables(const std::vector<std::string>& files, const convert::ImportOptions& reading,
                   const SelectionFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<std::string> recordings, ImportIntoRecordings(files, reading));
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(recordings, reading));
  ASSIGN_OR_RETURN(const model::Selection selection, SelectAmongAll(*store, flags));
  const std::string folder = FolderForLargeFiles() + std::string(kTables);
  std::error_code failed;
  if (!std::filesystem::create_directory(folder, failed))
    return Fail(ErrnoError(failed.value(), "make a folder beside the output"));
  ASSIGN_OR_RETURN(const store::ParquetSummary written, store::WriteParquet(recordings, selection, folder));
  ReportToParent(fmt::format("{}, {}", Counted(written.tables, "table"), Counted(written.rows, "row")));
  return {};
}

}  // namespace

int ExportTables(const std::vector<std::string>& files, const convert::ImportOptions& reading,
                 const SelectionFlags& selection, std::string output) {
  while (output.size() > 1 && output.ends_with('/')) output.pop_back();  // as shells complete folders
  const auto failed = [](const Error& error) {
    PrintError("export", error);
    return error.code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailed;
  };
  std::error_code ignored;
  if (std::filesystem::exists(output, ignored))
    return failed({ErrorCode::kInvalidArgument, output + " exists; give the name of a new folder with -o"});
  if (const Status there = CheckFolderOf(output); !there.has_value()) return failed(there.error());
  std::string holds;
  // The reader writes into a folder beside the output, which is then renamed.
  return RunReader({.command = "export",
                    .files = files,
                    .temporary_in = FolderOf(output),
                    .work =
                        [&] {
                          const Status done = WriteTables(files, reading, selection);
                          return done.has_value() ? kExitOk : failed(done.error());
                        },
                    .on_message = [&](std::string_view message) { holds = message; },
                    .on_success =
                        [&](const std::string& made_in) {
                          const std::string made = made_in + std::string(kTables);
                          if (std::rename(made.c_str(), output.c_str()) != 0)
                            return failed(ErrnoError(errno, "rename to " + output));
                          PrintNotice("export", fmt::format("{}: {}", output, holds));
                          return kExitOk;
                        }});
}

}  // namespace gpusonde::app
