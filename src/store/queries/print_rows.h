// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/result.h"
#include "store/store.h"

namespace gpusonde::store {

enum class RowFormat {
  // Aligned columns, numbers to the right. Control characters are shown as \xNN. If a width is given, the
  // widest text columns are truncated ("…") until a line fits.
  kText,
  // An array with one object per row and line; values as Rows::Json. The second column of a name gets "_2".
  kJson,
  // RFC 4180 with a header. NULL is an empty field, empty text is "". Control characters but line feeds and
  // tabs are shown as \xNN.
  kCsv,
};

struct Printed {
  int64_t rows = 0;
  bool cut = false;  // values were truncated to the width
};

// Streams all rows to `file`; text is aligned 1,000 rows at a time. `width` limits the lines of kText, in
// characters; 0: no limit. Errors: those of Rows::Next; kOutOfSpace, kIo.
Result<Printed> PrintRows(Rows& rows, RowFormat format, std::FILE* file, size_t width = 0);

}  // namespace gpusonde::store
