// SPDX-License-Identifier: Apache-2.0
// A section of call frame information; the first byte selects its kind.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "unwind/compile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpusonde::unwind::CfiFormat, gpusonde::unwind::RuleSet, gpusonde::unwind::Table;
  if (size == 0) return 0;
  RuleSet rules;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const auto format = data[0] % 2 == 0 ? CfiFormat::kEhFrame : CfiFormat::kDebugFrame;
  const auto table = Compile({{bytes, 0x1000, format}},
                             {{.file_offset = 0, .size = uint64_t{1} << 24, .address = 0}}, rules);
  if (!table.has_value()) return 0;
  // Invariants that the eBPF unwinder relies on.
  for (const Table::Page& page : table->pages) {
    if (page.count == 0 || page.first + page.count > table->rows.size()) std::abort();
    if ((table->rows[page.first] & 0xFFFF) != 0) std::abort();
    for (uint32_t row = page.first; row < page.first + page.count; ++row) {
      if (row > page.first && (table->rows[row - 1] & 0xFFFF) >= (table->rows[row] & 0xFFFF)) std::abort();
      if ((table->rows[row] >> 16) >= rules.rules().size()) std::abort();
    }
  }
  return 0;
}
