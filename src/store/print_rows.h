// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/result.h"
#include "store/store.h"

namespace gpusonde::store {

enum class RowFormat {
  // Columns aligned, numbers to the right. Characters that would steer a terminal are shown as \xNN. Where a
  // width is given, the widest columns of text are cut ("…") until a line fits.
  kText,
  // An array with one object per row and line; values as Rows::Json. A name that comes twice gets "_2".
  kJson,
  // RFC 4180 with a header. NULL is nothing, empty text is "". Control characters but line feeds and tabs are
  // shown as \xNN.
  kCsv,
};

struct Printed {
  int64_t rows = 0;
  bool cut = false;  // values were longer than the width allowed
};

// Writes all rows as they come; text is held back 1,000 rows at a time to align it. `width` is that of kText
// in characters, 0: any. Errors: those of Rows::Next; kOutOfSpace, kIo.
Result<Printed> PrintRows(Rows& rows, RowFormat format, std::FILE* file, size_t width = 0);

}  // namespace gpusonde::store
