// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/duckdb/connection.h"

namespace gpusonde::store {

enum class Access { kReading, kWriting };

// Attaches the recording at `path`, which must be there, as a catalog. Looks at the file before DuckDB does,
// whose words for what isn't a database help nobody. Errors, each naming the file: kNotFound,
// kPermissionDenied; kCorrupt for a folder, an empty or foreign file (says what it seems to be) and a
// truncated one, and for views, macros and generated columns, which would run its author's SQL; kTooNew;
// kUnavailable when another process is writing it.
Status AttachRecording(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
                       Access access);

// Makes a recording without rows at `path`, where nothing may be, and attaches it; in memory for ":memory:".
// A file of that name has all its tables, also after kill -9.
Status AttachNew(duckdb::Connection& connection, const std::string& path, std::string_view catalog);

// The same for a file that only counts once its writer has renamed it: quicker, and small if little is
// expected.
Status AttachTemporary(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
                       int64_t expected_bytes);

}  // namespace gpusonde::store
