// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusonde::symbols {

// Makes small ELF files, honest and crafted ones. Sections may lie over each other and outside of the file.
class ElfBuilder {
 public:
  ElfBuilder() : bytes_(sizeof(Elf64_Ehdr), '\0') { AddSection({}); }

  // Puts bytes into the file; where they are.
  uint64_t Put(std::string_view content) {
    bytes_.resize((bytes_.size() + 15) / 16 * 16);
    const uint64_t offset = bytes_.size();
    bytes_ += content;
    return offset;
  }
  template <class T>
  uint64_t PutAll(const std::vector<T>& values) {
    return Put({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});  // NOLINT
  }

  // Its number, for sh_link.
  uint32_t AddSection(const Elf64_Shdr& section) {
    sections_.push_back(section);
    return static_cast<uint32_t>(sections_.size() - 1);
  }
  void AddSegment(const Elf64_Phdr& segment) { segments_.push_back(segment); }

  // A symbol table with these functions, one for each 16 bytes of code from `address` on.
  void AddFunctions(const std::vector<std::string>& names, uint64_t address) {
    std::string strings(1, '\0');
    std::vector<Elf64_Sym> symbols(1);
    for (const std::string& name : names) {
      symbols.push_back({.st_name = static_cast<uint32_t>(strings.size()),
                         .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                         .st_other = 0,
                         .st_shndx = 1,
                         .st_value = address,
                         .st_size = 16});
      strings += name + '\0';
      address += 16;
    }
    const uint32_t link =
        AddSection({.sh_type = SHT_STRTAB, .sh_offset = Put(strings), .sh_size = strings.size()});
    AddSection({.sh_type = SHT_SYMTAB,
                .sh_offset = PutAll(symbols),
                .sh_size = symbols.size() * sizeof(Elf64_Sym),
                .sh_link = link,
                .sh_entsize = sizeof(Elf64_Sym)});
  }

  void AddBuildId(std::string_view id) {
    const Elf64_Nhdr head{
        .n_namesz = 4, .n_descsz = static_cast<uint32_t>(id.size()), .n_type = NT_GNU_BUILD_ID};
    std::string note(reinterpret_cast<const char*>(&head), sizeof head);  // NOLINT
    note += std::string_view("GNU\0", 4);
    note += id;
    AddSegment({.p_type = PT_NOTE,
                .p_flags = PF_R,
                .p_offset = Put(note),
                .p_vaddr = 0,
                .p_paddr = 0,
                .p_filesz = note.size(),
                .p_memsz = note.size(),
                .p_align = 4});
  }

  std::string Finish() {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header;
    header.e_phoff = PutAll(segments_);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<uint16_t>(segments_.size());
    header.e_shoff = PutAll(sections_);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections_.size());
    std::memcpy(bytes_.data(), &header, sizeof header);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace gpusonde::symbols
