// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/duckdb/library.h"

namespace gpusonde::store::duckdb {

// A type of DuckDB, asked for once per column: going through the C API for every value would cost more than
// the value.
struct Type {
  duckdb_type id = DUCKDB_TYPE_INVALID;
  duckdb_type storage = DUCKDB_TYPE_INVALID;  // of a DECIMAL or ENUM: the integer in memory
  uint8_t width = 0;                          // of a DECIMAL
  uint8_t scale = 0;                          // of a DECIMAL
  uint64_t array_size = 0;                    // of an ARRAY
  // Elements (LIST, ARRAY), fields (STRUCT), key and value (MAP), tag and members (UNION).
  std::vector<Type> children;
  // Names of fields or members; the values of an ENUM.
  std::vector<std::string> names;
};

Type DescribeType(const Library& library, duckdb_logical_type type);

// As SQL writes it: "BIGINT", "DECIMAL(18,3)", "UUID[]", "STRUCT(a BIGINT)".
std::string TypeName(const Type& type);

}  // namespace gpusonde::store::duckdb
