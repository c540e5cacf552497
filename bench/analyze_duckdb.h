// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Prints the CPU seconds of the kernels' summary of an Nsight export by way of DuckDB, on one thread: cold,
// from the file by libsqlite3 into a table, to Parquet and to the answer; warm, from Parquet. Returns an exit
// status.
int MeasureDuckDb(const std::string& path, const std::string& parquet);
