// SPDX-License-Identifier: Apache-2.0
#include "symbols/elf_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/demangle.h"
#include "symbols/elf_code.h"
#include "symbols/elf_image.h"

// Where this program was loaded: a symbol of the linker.
extern "C" const char __ehdr_start;  // NOLINT(readability-identifier-naming,bugprone-reserved-identifier)

// Found again below through the symbol table of this very program.
namespace gpusonde_test_landmark {
__attribute__((noinline)) int Function(int x) { return x * 7; }
}  // namespace gpusonde_test_landmark

namespace gpusonde::symbols {
namespace {

uint64_t FileOffsetOf(const void* address) {
  struct Search {
    uintptr_t address;
    uint64_t offset;
  } search{reinterpret_cast<uintptr_t>(address), 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        auto& wanted = *static_cast<Search*>(context);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          const uintptr_t start = info->dlpi_addr + header.p_vaddr;
          if (header.p_type == PT_LOAD && wanted.address >= start && wanted.address < start + header.p_filesz)
            wanted.offset = wanted.address - start + header.p_offset;
        }
        return 0;
      },
      &search);
  return search.offset;
}

std::vector<CodeSection> SectionsOfSelf() {
  const Fd fd = Open("/proc/self/exe", O_RDONLY).value();
  return FindCodeSections(ElfImage::Read(fd.get(), "self").value());
}

ElfFile OwnProgram() { return ElfFile::Load(Open("/proc/self/exe", O_RDONLY).value(), "self").value(); }

TEST(ElfFile, FindsAFunctionFromItsFirstToItsLastByte) {
  const ElfFile file = OwnProgram();
  const uint64_t offset = FileOffsetOf(reinterpret_cast<const void*>(&gpusonde_test_landmark::Function));
  const std::optional<Symbol> symbol = file.Find(offset);
  ASSERT_TRUE(symbol.has_value());
  EXPECT_EQ(Demangle(symbol->name), "gpusonde_test_landmark::Function(int)");
  ASSERT_GT(symbol->size, 1u);
  EXPECT_EQ(file.Find(offset + symbol->size - 1)->name, symbol->name);
  const std::optional<Symbol> after = file.Find(offset + symbol->size);
  EXPECT_TRUE(!after.has_value() || after->name != symbol->name);
}

TEST(ElfFile, StubsAreNamedForWhatTheyJumpTo) {
  const Fd fd = Open("/proc/self/exe", O_RDONLY).value();
  ElfImage image = ElfImage::Read(fd.get(), "self").value();
  const std::vector<PltStub> stubs = FindPltStubs(image).value();
  ASSERT_FALSE(stubs.empty()) << "built without a procedure linkage table?";
  const ElfFile file = OwnProgram();
  std::set<std::string> names;
  for (const PltStub& stub : stubs) {
    const std::optional<Symbol> symbol = file.Find(FileOffsetOf(&__ehdr_start + stub.address));
    ASSERT_TRUE(symbol.has_value());
    EXPECT_TRUE(symbol->name.ends_with("@plt")) << symbol->name;
    EXPECT_TRUE(names.insert(symbol->name).second) << symbol->name;
  }
  EXPECT_TRUE(names.contains("strlen@plt")) << "which this test calls";
}

TEST(ElfFile, ASymbolWithoutSizeEndsWithItsSection) {
  const ElfFile file = OwnProgram();
  for (const CodeSection& section : SectionsOfSelf()) {
    const std::optional<Symbol> symbol = file.Find(FileOffsetOf(&__ehdr_start + section.begin));
    if (symbol.has_value()) {
      EXPECT_GE(symbol->address, section.begin) << symbol->name;
    }
  }
}

TEST(ElfFile, FunctionsWithoutSymbolsHaveTheirRanges) {
  const ElfFile file = OwnProgram();
  const uint64_t start = FileOffsetOf(reinterpret_cast<const void*>(&gpusonde_test_landmark::Function));
  const uint64_t size = file.Find(start)->size;
  for (uint64_t at = start; at < start + size; ++at) EXPECT_EQ(file.FindFunctionStart(at), start);
  EXPECT_NE(file.FindFunctionStart(start - 1), start);
}

TEST(ElfFile, LibrariesWithoutSymtabAreNamedFromTheirDynamicTable) {
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&::getenv), &info), 0);
  const ElfFile file = ElfFile::Load(Open(info.dli_fname, O_RDONLY).value(), "libc").value();
  const std::optional<Symbol> symbol = file.Find(FileOffsetOf(dlsym(RTLD_DEFAULT, "getenv")));
  ASSERT_TRUE(symbol.has_value());
  EXPECT_NE(symbol->name.find("getenv"), std::string::npos) << symbol->name;
}

TEST(ElfFile, OffsetsOutsideEverySegmentHaveNoSymbol) {
  EXPECT_FALSE(OwnProgram().Find(UINT64_MAX).has_value());
  EXPECT_FALSE(OwnProgram().Find(uint64_t{1} << 40).has_value());
}

TEST(ElfFile, BuildIdIsTwentyBytesInHex) {
  EXPECT_EQ(OwnProgram().build_id().size(), 40u);
  EXPECT_EQ(ReadBuildId(Open("/proc/self/exe", O_RDONLY).value().get()).value(), OwnProgram().build_id());
}

TEST(ElfFile, WhatIsNoElfFileIsCorrupt) {
  EXPECT_EQ(ElfFile::Load(Open("/dev/null", O_RDONLY).value(), "null").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ElfFile::Load(Open("/proc/self/maps", O_RDONLY).value(), "maps").error().code,
            ErrorCode::kCorrupt);
}

TEST(ElfFile, EveryTruncationOfAProgramIsSurvived) {
  const std::string whole = ReadFile("/proc/self/exe", size_t{256} << 20).value();
  const std::string path = testing::TempDir() + "gpusonde_truncated_" + std::to_string(::getpid());
  for (size_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(
        WriteFileAtomically(path, std::string_view(whole).substr(0, whole.size() * i / 64)).has_value());
    const Result<ElfFile> file = ElfFile::Load(Open(path, O_RDONLY).value(), path);
    if (file.has_value()) (void)file->Find(4096);
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace gpusonde::symbols
