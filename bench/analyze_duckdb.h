// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Prints the CPU seconds of the kernel summary of an Nsight export through DuckDB, on one thread: cold, from
// the file through libsqlite3 into a table, to Parquet and to the result; warm, from Parquet. Returns an exit
// status.
int MeasureDuckDb(const std::string& path, const std::string& parquet);
