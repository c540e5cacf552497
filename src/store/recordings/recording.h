// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/batch.h"
#include "store/store.h"

// Recordings: `*.sonde` files, DuckDB databases that any DuckDB client opens.
namespace gpusonde::store {

// The folder in which `gpusonde record` gathers a recording has its name and this ending.
inline constexpr std::string_view kSpoolEnding = ".spool";

// Converts the spool folder to a recording at `path`, atomically: into a temporary file beside it that is
// renamed when complete. Replaces an existing file. A torn end of the spool is ignored. Returns the number of
// spool frames read. Errors: kNotFound without a spool, kCorrupt, kOutOfSpace, kIo; the spool is kept in
// every case.
Result<int64_t> WriteRecording(const std::string& spool_folder, const std::string& path);

// The same, but returns the recording for reading: OpenRecordings would start the database once more, and
// check a file that we have just written.
Result<std::unique_ptr<Store>> WriteAndReadRecording(const std::string& spool_folder,
                                                     const std::string& path);

// Takes rows of one table. Errors: those of writing them.
using BatchSink = std::function<Status(const model::Batch& batch)>;

struct RecordingSize {
  uint64_t expected_bytes = 0;  // roughly
  uint64_t max_bytes = std::numeric_limits<uint64_t>::max();
};

// Writes what `produce` gives to the sink as a recording at `path`, atomically and replacing an existing file
// as above. Of rows with the same key the last stays. Then `complete` is given the recording, to read it and
// append what follows from it, if it isn't null. Errors: those of `produce` and `complete`; kOutOfSpace
// beyond `max_bytes`; kIo.
Status WriteRecording(const std::string& path, const RecordingSize& size,
                      const std::function<Status(const BatchSink& sink)>& produce,
                      const std::function<Status(Store& store)>& complete = nullptr);

// Creates a recording at `path` to append to. It is complete once the Store is destroyed.
// Errors: kInvalidArgument when `path` exists; kOutOfSpace, kPermissionDenied, kIo.
Result<std::unique_ptr<Store>> CreateRecording(const std::string& path);

// The same in memory.
Result<std::unique_ptr<Store>> CreateInMemory();

// Loads DuckDB's library, for a process that is about to drop its access to files. Errors: kUnavailable.
Status LoadDatabase();

// DuckDB takes only UTF-8 as the name of a file. Checked before a recording begins, as it is written at its
// end. Errors: kInvalidArgument.
Status CheckRecordingName(const std::string& path);

// Why there is no recording or trace at `path`, if that is known: it is not finished, or is a URL.
std::optional<Error> WhyAbsent(const std::string& path);

// Opens recordings read-only as one store; the tables of several files are read as one. Those of each file
// alone are in the catalogs recording0, recording1, …; their rows are numbered from 0 as `rowid`.
// Errors, each naming the file: kNotFound, kPermissionDenied; kCorrupt for a truncated file or one
// that is no recording (the message says what it appears to be); kTooNew; kUnavailable when another process
// is writing it; kInvalidArgument for a name that is not UTF-8.
Result<std::unique_ptr<Store>> OpenRecordings(const std::vector<std::string>& paths);

}  // namespace gpusonde::store
