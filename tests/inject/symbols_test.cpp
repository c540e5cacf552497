// SPDX-License-Identifier: Apache-2.0
// What libgpusonde-inject.so asks of the system that it is loaded into.
#include <elf.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "wire/gpu_event.h"

namespace {

using ::testing::Contains;
using ::testing::UnorderedElementsAre;

// The library's dynamic section, read as the dynamic linker would.
struct Library {
  std::string bytes;
  std::vector<Elf64_Shdr> sections;

  template <class T>
  std::vector<T> Table(const Elf64_Shdr& section) const {
    std::vector<T> table(section.sh_size / sizeof(T));
    std::memcpy(table.data(), bytes.data() + section.sh_offset, table.size() * sizeof(T));
    return table;
  }
  const Elf64_Shdr& Of(uint32_t type) const {
    for (const Elf64_Shdr& section : sections)
      if (section.sh_type == type) return section;
    ADD_FAILURE() << "no section of type " << type;
    return sections[0];
  }
  std::string Text(const Elf64_Shdr& section, size_t offset) const {
    return bytes.c_str() + sections[section.sh_link].sh_offset + offset;
  }
};

Library Load() {
  Library library;
  library.bytes = gpusonde::ReadFile(GPUSONDE_INJECT_LIBRARY).value();
  Elf64_Ehdr header;
  std::memcpy(&header, library.bytes.data(), sizeof header);
  library.sections.resize(header.e_shnum);
  std::memcpy(library.sections.data(), library.bytes.data() + header.e_shoff,
              header.e_shnum * sizeof(Elf64_Shdr));
  return library;
}

// What `size` bytes of a note take: whole words of four.
size_t PaddedSize(size_t size) { return (size + 3) / 4 * 4; }

// "GLIBC_2.17" -> {2, 17}.
std::pair<int, int> GlibcVersion(const std::string& name) {
  int major = 0;
  int minor = 0;
  EXPECT_GE(std::sscanf(name.c_str(), "GLIBC_%d.%d", &major, &minor), 2) << name;
  return {major, minor};
}

TEST(InjectLibrary, NeedsTheCLibraryOnly) {
  const Library library = Load();
  const Elf64_Shdr& dynamic = library.Of(SHT_DYNAMIC);
  std::set<std::string> needed;
  for (const Elf64_Dyn& entry : library.Table<Elf64_Dyn>(dynamic))
    if (entry.d_tag == DT_NEEDED) needed.insert(library.Text(dynamic, entry.d_un.d_val));
  needed.erase("ld-linux-x86-64.so.2");  // __tls_get_addr; every process has it
  EXPECT_THAT(needed, UnorderedElementsAre("libc.so.6"));
}

TEST(InjectLibrary, NeedsNothingNewerThanGlibc217) {
  const Library library = Load();
  const Elf64_Shdr& section = library.Of(SHT_GNU_verneed);
  size_t versions = 0;
  for (size_t at = section.sh_offset, files = section.sh_info; files > 0; --files) {
    Elf64_Verneed file;
    std::memcpy(&file, library.bytes.data() + at, sizeof file);
    for (size_t entry_at = at + file.vn_aux, left = file.vn_cnt; left > 0; --left, ++versions) {
      Elf64_Vernaux entry;
      std::memcpy(&entry, library.bytes.data() + entry_at, sizeof entry);
      const std::string name = library.Text(section, entry.vna_name);
      EXPECT_LE(GlibcVersion(name), std::pair(2, 17)) << name;
      entry_at += entry.vna_next;
    }
    at += file.vn_next;
  }
  EXPECT_GT(versions, 0U);
}

TEST(InjectLibrary, HasNoCppRuntimeAndExportsItsEntryPoints) {
  const Library library = Load();
  const Elf64_Shdr& symbols = library.Of(SHT_DYNSYM);
  std::set<std::string> exported;
  for (const Elf64_Sym& symbol : library.Table<Elf64_Sym>(symbols)) {
    const std::string name = library.Text(symbols, symbol.st_name);
    EXPECT_FALSE(name.starts_with("_Z") || name.starts_with("__cxa_throw") || name.starts_with("__gxx") ||
                 name.starts_with("_Unwind"))
        << name;
    for (const char* forbidden : {"abort", "printf", "malloc", "free", "exit", "raise", "__stack_chk_fail"})
      EXPECT_NE(name, forbidden);
    if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL) exported.insert(name);
  }
  EXPECT_THAT(exported,
              UnorderedElementsAre("InitializeInjection", "InitializeInjectionNvtx2", "ncclProfiler_v3",
                                   "ncclProfiler_v4", "ncclProfiler_v5", "ncclProfiler_v6"));
}

TEST(InjectLibrary, HasItsProbesWithAFiveByteNop) {
  const Library library = Load();
  std::set<std::string> probes;
  for (const Elf64_Shdr& section : library.sections) {
    const std::string name =
        library.bytes.c_str() + library.sections[library.sections.size() - 1].sh_offset + section.sh_name;
    if (name != ".note.stapsdt") continue;
    for (size_t at = section.sh_offset; at < section.sh_offset + section.sh_size;) {
      Elf64_Nhdr note;
      std::memcpy(&note, library.bytes.data() + at, sizeof note);
      const size_t description = at + sizeof note + PaddedSize(note.n_namesz);
      uint64_t address = 0;
      std::memcpy(&address, library.bytes.data() + description, sizeof address);
      const std::string provider = library.bytes.c_str() + description + 3 * sizeof address;
      const std::string probe =
          library.bytes.c_str() + description + 3 * sizeof address + provider.size() + 1;
      probes.insert(fmt::format("{}:{}", provider, probe));
      // Text is at the same place in the file as in memory (checked by the linker's page alignment of
      // segments).
      EXPECT_EQ(library.bytes.substr(address, 5), std::string("\x0f\x1f\x44\x00\x00", 5)) << probe;
      at = description + PaddedSize(note.n_descsz);
    }
  }
  std::set<std::string> expected = {"gpusonde:state", "gpusonde:records", "gpusonde:launch", "gpusonde:ready",
                                    "gpusonde:snapshot"};
  for (int budget = 0; budget < GPUSONDE_GPU_BUDGET_COUNT; ++budget)
    expected.insert(fmt::format("gpusonde:budget{}", budget));
  EXPECT_EQ(probes, expected);
}

}  // namespace
