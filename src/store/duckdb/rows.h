// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "store/duckdb/connection.h"
#include "store/duckdb/handle.h"
#include "store/store.h"

namespace gpusonde::store::duckdb {

// The rows of a streaming result, which needs its connection until the last one is read.
std::unique_ptr<Rows> MakeRows(Connection connection, Handle<duckdb_result> result);

}  // namespace gpusonde::store::duckdb
