// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/id128.h"
#include "store/duckdb/library.h"
#include "store/duckdb/type.h"

namespace gpusonde::store::duckdb {

// UUIDs lie in memory as signed 128-bit integers with the top bit flipped, so that they sort as integers do.
inline duckdb_hugeint UuidOf(Id128 id) { return {id.low, static_cast<int64_t>(id.high ^ uint64_t{1} << 63)}; }
inline Id128 IdOf(duckdb_hugeint uuid) {
  return {static_cast<uint64_t>(uuid.upper) ^ uint64_t{1} << 63, uuid.lower};
}

// One vector of a chunk with the vectors inside it, ready to be read by row. Valid while the chunk is.
struct Vector {
  Vector(const Library& library, const Type& type, duckdb_vector vector);

  bool IsNull(uint64_t row) const { return validity != nullptr && (validity[row / 64] >> row % 64 & 1) == 0; }
  template <class T>
  T At(uint64_t row) const {
    T value;
    std::memcpy(&value, static_cast<const std::byte*>(data) + row * sizeof(T), sizeof(T));
    return value;
  }
  // VARCHAR, BLOB, BIT and BIGNUM; points into the chunk.
  std::string_view Bytes(uint64_t row) const;

  const Type* type;
  const void* data;
  const uint64_t* validity;
  std::vector<Vector> children;  // as type->children; a MAP's as those of its entries
};

// The value as a number: any integer type, BOOLEAN, and for Float64Of also FLOAT, DOUBLE and DECIMAL. 0 for
// what doesn't fit, for NULL and for other types.
int64_t Int64Of(const Vector& vector, uint64_t row);
double Float64Of(const Vector& vector, uint64_t row);

// VARCHAR, BLOB and ENUM; empty for NULL and for other types.
std::string_view TextOf(const Vector& vector, uint64_t row);

// Any value as a person reads it: ids as 32 hex digits, NULL as "NULL", lists as "[a, b]".
std::string DisplayOf(const Library& library, const Vector& vector, uint64_t row);

// Any value as JSON: numbers as numbers (whole ones whole; NaN and infinities as null), lists as arrays,
// structs and maps as objects, the rest as strings that read like DisplayOf.
std::string JsonOf(const Library& library, const Vector& vector, uint64_t row);

}  // namespace gpusonde::store::duckdb
