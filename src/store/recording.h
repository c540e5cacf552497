// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

// Recordings: `*.sonde` files, DuckDB databases that any DuckDB client opens.
namespace gpusonde::store {

// Makes the recording at `path` from the spool folder: into a temporary file beside it, renamed when
// complete, so that `path` is a whole recording or isn't there. An existing file at `path` is replaced. Torn
// ends of the spool are cut off; that is no error. Returns the number of spool frames read. Errors: kNotFound
// without a spool, kCorrupt, kOutOfSpace, kIo; the spool is kept in every case.
Result<int64_t> WriteRecording(const std::string& spool_folder, const std::string& path);

// A new recording at `path` to append to: what importers fill. It is whole once the Store is destroyed.
// Errors: kInvalidArgument when there is a file at `path`; kOutOfSpace, kPermissionDenied, kIo.
Result<std::unique_ptr<Store>> CreateRecording(const std::string& path);

// The same in memory, gone with the Store.
Result<std::unique_ptr<Store>> CreateInMemory();

// Loads DuckDB's library now, for a process that can't open it later. Errors: kUnavailable.
Status LoadDatabase();

// Opens recordings read-only as one store; the tables of several files are read as one. Those of each file
// alone are in the catalogs recording0, recording1, …; their rows are numbered from 0 as `rowid`.
// Errors, each naming the file: kNotFound, kPermissionDenied; kCorrupt for what is no gpusonde recording
// (says what it seems to be) or is truncated; kTooNew; kUnavailable when another process is writing it.
Result<std::unique_ptr<Store>> OpenRecordings(const std::vector<std::string>& paths);

}  // namespace gpusonde::store
