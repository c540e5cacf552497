// SPDX-License-Identifier: Apache-2.0
#include "symbols/elf_image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "symbols/elf_file.h"
#include "symbols/testing/elf_builder.h"

namespace gpusonde::symbols {
namespace {

class ElfImageTest : public testing::Test {
 protected:
  // A file with this content, and a hole up to `size`.
  Fd File(std::string_view content, int64_t size = 0) const {
    const std::string path = folder_ / "file";
    EXPECT_TRUE(WriteFileAtomically(path, content).has_value());
    Fd file = Open(path, O_RDWR).value();
    EXPECT_TRUE(size == 0 || ::ftruncate(file.get(), size) == 0);
    return file;
  }
  TempFolder folder_;
};

constexpr Elf64_Phdr kCode{.p_type = PT_LOAD,
                           .p_flags = PF_R | PF_X,
                           .p_offset = 0,
                           .p_vaddr = 0x1000,
                           .p_paddr = 0,
                           .p_filesz = 0x1000,
                           .p_memsz = 0x1000,
                           .p_align = 0x1000};

TEST_F(ElfImageTest, AFileMadeByTheBuilderIsReadAsIntended) {
  ElfBuilder builder;
  builder.AddSegment(kCode);
  builder.AddBuildId("0123456789");
  builder.AddFunctions({"first", "second"}, 0x1010);
  builder.AddSection({.sh_type = SHT_NOBITS, .sh_offset = 0x1000, .sh_size = uint64_t{1} << 40});
  const ElfFile file = ElfFile::Load(File(builder.Finish()), "file").value();
  EXPECT_EQ(file.build_id(), "30313233343536373839");
  ASSERT_TRUE(file.Find(0x28).has_value());
  EXPECT_EQ(file.Find(0x28)->name, "second");
}

// A table of symbols that each name a function, without names.
std::vector<Elf64_Sym> Functions(size_t count) {
  return std::vector<Elf64_Sym>(count, {.st_name = 0,
                                        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                        .st_other = 0,
                                        .st_shndx = 1,
                                        .st_value = 0x1000,
                                        .st_size = 16});
}

TEST_F(ElfImageTest, SymbolTablesThatOverlapAreReadWithinBounds) {
  ElfBuilder builder;
  const std::string strings(16, '\0');
  const uint32_t link =
      builder.AddSection({.sh_type = SHT_STRTAB, .sh_offset = builder.Put(strings), .sh_size = 16});
  const std::vector<Elf64_Sym> symbols = Functions(8192);
  const uint64_t offset = builder.PutAll(symbols);
  for (int i = 0; i < 2000; ++i)
    builder.AddSection({.sh_type = SHT_SYMTAB,
                        .sh_offset = offset,
                        .sh_size = symbols.size() * sizeof(Elf64_Sym),
                        .sh_link = link,
                        .sh_entsize = sizeof(Elf64_Sym)});
  const auto file = ElfFile::Load(File(builder.Finish()), "bomb");
  ASSERT_FALSE(file.has_value()) << "16 million functions, 400 MB, in a file of 330 KB";
  EXPECT_EQ(file.error().code, ErrorCode::kUnsupported) << file.error().message;
}

TEST_F(ElfImageTest, AHoleIsNotReadAsATable) {
  constexpr uint64_t kHole = uint64_t{1'200'000'000};
  for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    ElfBuilder builder;
    const uint32_t link = builder.AddSection({.sh_type = SHT_STRTAB, .sh_size = kHole});
    for (int i = 0; i < 10; ++i)
      builder.AddSection(
          {.sh_type = type, .sh_size = kHole, .sh_link = link, .sh_entsize = sizeof(Elf64_Sym)});
    const auto file = ElfFile::Load(File(builder.Finish(), kHole), "hole");
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, ErrorCode::kUnsupported) << file.error().message;
    EXPECT_NE(file.error().message.find("256 MB of tables"), std::string::npos) << file.error().message;
  }
}

TEST_F(ElfImageTest, MoreHeadersThanAnyLinkerWritesAreRefused) {
  ElfBuilder sections, segments;
  for (int i = 0; i < 5000; ++i) sections.AddSection({});
  for (int i = 0; i < 300; ++i) segments.AddSegment(kCode);
  for (ElfBuilder* builder : {&sections, &segments}) {
    const auto image = ElfImage::Read(File(builder->Finish()).get(), "file");
    ASSERT_FALSE(image.has_value());
    EXPECT_EQ(image.error().code, ErrorCode::kUnsupported) << image.error().message;
  }
}

TEST_F(ElfImageTest, AFileThatIsCutWhileItIsReadIsAnError) {
  ElfBuilder builder;
  builder.AddFunctions({"f"}, 0x1000);
  const Fd file = File(builder.Finish());
  ElfImage image = ElfImage::Read(file.get(), "file").value();
  const ElfImage::Section table = image.sections().back();
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(table.offset + 8)), 0);
  EXPECT_EQ(image.Bytes(table.offset, table.size).error().code, ErrorCode::kCorrupt);
}

TEST_F(ElfImageTest, SectionsOutsideTheFileAreLeftOut) {
  ElfBuilder builder;
  builder.AddSection({.sh_type = SHT_PROGBITS, .sh_offset = ~uint64_t{0} - 8, .sh_size = 64});
  builder.AddSection({.sh_type = SHT_PROGBITS, .sh_offset = 8, .sh_size = ~uint64_t{0}});
  const Fd file = File(builder.Finish());
  const ElfImage image = ElfImage::Read(file.get(), "file").value();
  for (const ElfImage::Section& section : image.sections()) EXPECT_EQ(section.size, 0u);
}

}  // namespace
}  // namespace gpusonde::symbols
