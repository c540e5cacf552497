// SPDX-License-Identifier: Apache-2.0
#include "symbols/go_section.h"

#include <string_view>

namespace gpusonde::symbols {
namespace {

// The go command's is 3 MB, kubelet's 40.
constexpr uint64_t kMaxSectionBytes = uint64_t{512} << 20;

}  // namespace

std::optional<GoSection> FindGoSection(Elf* elf) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return std::nullopt;
  uint64_t text_start = 0;
  Elf_Data* found = nullptr;
  uint64_t file_offset = 0;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS) continue;
    const char* raw_name = elf_strptr(elf, names, header.sh_name);
    const std::string_view name = raw_name == nullptr ? "" : raw_name;
    if (name == ".text") text_start = header.sh_addr;
    if (name != ".gopclntab" && name != ".data.rel.ro.gopclntab") continue;
    if (header.sh_size > kMaxSectionBytes || (header.sh_flags & SHF_COMPRESSED) != 0) continue;
    found = elf_rawdata(section, nullptr);
    file_offset = header.sh_offset;
  }
  if (found == nullptr || found->d_buf == nullptr) return std::nullopt;
  const auto table = GoTable::Parse({static_cast<const std::byte*>(found->d_buf), found->d_size}, text_start);
  if (!table.has_value()) return std::nullopt;
  return GoSection{*table, file_offset};
}

}  // namespace gpusonde::symbols
