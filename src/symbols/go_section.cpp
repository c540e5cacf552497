// SPDX-License-Identifier: Apache-2.0
#include "symbols/go_section.h"

#include <utility>

namespace gpusonde::symbols {

Result<std::optional<GoSection>> FindGoSection(ElfImage& image) {
  uint64_t text_start = 0;
  const ElfImage::Section* found = nullptr;
  for (const ElfImage::Section& section : image.sections()) {
    if (section.type != SHT_PROGBITS) continue;
    if (section.name == ".text") text_start = section.address;
    const bool is_table = section.name == ".gopclntab" || section.name == ".data.rel.ro.gopclntab";
    if (is_table && (section.flags & SHF_COMPRESSED) == 0) found = &section;
  }
  if (found == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(std::vector<std::byte> bytes, image.Bytes(found->offset, found->size));
  const auto table = GoTable::Parse(bytes, text_start);
  if (!table.has_value()) return std::nullopt;
  return GoSection{std::move(bytes), *table, found->offset};
}

}  // namespace gpusonde::symbols
