// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>

#include "base/result.h"
#include "store/store.h"

namespace gpusonde::store {

enum class RowFormat {
  // Columns aligned, numbers to the right. Characters that would steer a terminal are shown as \xNN.
  kText,
  // An array with one object per row and line; values as Rows::Json. A name that comes twice gets "_2".
  kJson,
  // RFC 4180 with a header. NULL is nothing, empty text is "". Control characters but line feeds and tabs are
  // shown as \xNN.
  kCsv,
};

// Writes all rows as they come; text is held back 1,000 rows at a time to align it. Returns how many there
// were. Errors: those of Rows::Next; kOutOfSpace, kIo.
Result<int64_t> PrintRows(Rows& rows, RowFormat format, std::FILE* file);

}  // namespace gpusonde::store
