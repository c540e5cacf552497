// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/duckdb/connection.h"

namespace gpusonde::store {

enum class Access { kReading, kWriting };

// For Settings::threads: how many are worth their cost for files of so many bytes in all.
int ThreadsFor(uint64_t bytes);

// Attaches the existing recording at `path` as a catalog. Inspects the file first, since DuckDB's messages
// about foreign files help nobody. Errors, each naming the file: kNotFound, kPermissionDenied; kCorrupt for a
// folder, an empty or foreign file (says what it seems to be) and a truncated one, and for views, macros and
// generated columns, which would run its author's SQL; kTooNew; kUnavailable when another process is writing
// it.
Status AttachRecording(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
                       Access access);

// How a new file is laid out: as DuckDB does by default, or so that it takes little memory while it is
// written.
enum class Layout { kDefault, kSmall };

// Creates an empty recording at `path`, which must not exist, and attaches it; in memory for ":memory:". A
// file of that name always has all its tables, even after kill -9.
Status AttachNew(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
                 Layout layout = Layout::kDefault);

// The same for a temporary file that its writer renames when complete: faster, and small if few rows are
// expected.
Status AttachTemporary(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
                       int64_t expected_bytes);

// An instance with the views over these recordings, read-only. It can reach their files, write below `folder`
// ("": nowhere), and nothing else, whatever SQL it is given. Errors: those of OpenRecordings (recording.h).
Result<std::shared_ptr<duckdb::Instance>> OpenForReading(const std::vector<std::string>& paths,
                                                         const std::string& folder);

}  // namespace gpusonde::store
