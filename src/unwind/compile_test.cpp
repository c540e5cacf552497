// SPDX-License-Identifier: Apache-2.0
#include "unwind/compile.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <libelf.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "unwind/testing/frame_builder.h"

namespace gpusonde::unwind {
namespace {

// Looks up a rule like the kernel, without shards.
const Rule& RuleAt(const Table& table, const RuleSet& rules, uint64_t address) {
  const uint64_t offset = address - table.base;
  if (address < table.base || offset / 65536 >= table.pages.size()) return rules.rules()[RuleSet::kNone];
  const Table::Page& page = table.pages[offset / 65536];
  const std::span rows = std::span(table.rows).subspan(page.first, page.count);
  const auto after =
      std::ranges::upper_bound(rows, offset & 0xFFFF, {}, [](uint32_t row) { return row & 0xFFFF; });
  return rules.rules()[*std::prev(after) >> 16];
}

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};

std::unique_ptr<Elf, EndElf> BeginElf(const Fd& fd) {
  elf_version(EV_CURRENT);
  return std::unique_ptr<Elf, EndElf>(elf_begin(fd.get(), ELF_C_READ, nullptr));
}

struct EndCfi {
  void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
};
struct FreeFrame {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }  // NOLINT: malloc'ed by libdw
};

// The result of elfutils as one of our rules; nullopt if our rules can't express it.
class Oracle {
 public:
  // Of .eh_frame, or of .debug_frame; the handle's.
  explicit Oracle(Dwarf_CFI* cfi) : cfi_(cfi) {}

  std::optional<Rule> At(uint64_t address) const {
    Dwarf_Frame* raw = nullptr;
    if (dwarf_cfi_addrframe(cfi_, address, &raw) != 0) return RuleOfKind(GPUSONDE_CFA_NONE);
    const std::unique_ptr<Dwarf_Frame, FreeFrame> frame(raw);
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    Dwarf_Op memory[3];
    if (dwarf_frame_register(raw, GPUSONDE_DWARF_RA, memory, &ops, &count) != 0) return std::nullopt;
    if (count == 0 && ops == memory) return RuleOfKind(GPUSONDE_CFA_END);  // undefined
    Rule rule = RuleOfKind(GPUSONDE_CFA_REGISTER);
    const std::optional<int32_t> ra = AtCfa(ops, count);
    if (!ra.has_value()) return std::nullopt;
    rule.ra = GPUSONDE_SAVED_AT_CFA;
    rule.ra_offset = *ra;
    if (dwarf_frame_cfa(raw, &ops, &count) != 0 || count != 1) return std::nullopt;
    if (ops[0].atom != DW_OP_bregx) return std::nullopt;
    rule.cfa_register = static_cast<uint8_t>(ops[0].number);
    rule.cfa_offset = static_cast<int32_t>(ops[0].number2);
    if (dwarf_frame_register(raw, GPUSONDE_DWARF_RBP, memory, &ops, &count) != 0) return std::nullopt;
    if (count == 0) return rule;
    const std::optional<int32_t> rbp = AtCfa(ops, count);
    if (!rbp.has_value()) return std::nullopt;
    rule.rbp = GPUSONDE_SAVED_AT_CFA;
    rule.rbp_offset = *rbp;
    return rule;
  }

 private:
  static std::optional<int32_t> AtCfa(const Dwarf_Op* ops, size_t count) {
    if (count == 0 || ops[0].atom != DW_OP_call_frame_cfa) return std::nullopt;
    if (count == 1) return 0;
    if (count != 2 || ops[1].atom != DW_OP_plus_uconst) return std::nullopt;
    return static_cast<int32_t>(ops[1].number);
  }
  Dwarf_CFI* cfi_;
};

void CompareWithElfutils(const std::string& path) {
  const Fd fd = Open(path, O_RDONLY).value();
  RuleSet rules;
  const Result<Table> table = CompileFile(fd.get(), path, rules);
  ASSERT_TRUE(table.has_value()) << table.error().message;
  EXPECT_GT(table->functions, 100);
  EXPECT_EQ(table->malformed, 0);

  const std::unique_ptr<Elf, EndElf> elf = BeginElf(fd);
  ASSERT_NE(elf, nullptr);
  Dwarf_CFI* cfi = dwarf_getcfi_elf(elf.get());
  const Oracle oracle(cfi);
  std::mt19937_64 generator(1);
  int64_t compared = 0, covered = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t address = table->base + generator() % (table->pages.size() * 65536);
    const std::optional<Rule> expected = oracle.At(address);
    if (!expected.has_value()) continue;
    ++compared;
    // Padding between functions keeps the rule before it.
    if (expected->cfa == GPUSONDE_CFA_NONE) continue;
    ++covered;
    const Rule& found = RuleAt(*table, rules, address);
    ASSERT_TRUE(found == *expected) << path
                                    << fmt::format(
                                           " at {:#x}: CFA kind {} of {} + {}, expected {} of {} + {}",
                                           address, found.cfa, found.cfa_register, found.cfa_offset,
                                           expected->cfa, expected->cfa_register, expected->cfa_offset);
  }
  EXPECT_GT(compared, 15'000);
  EXPECT_GT(covered, 5'000);
  dwarf_cfi_end(cfi);
}

TEST(Compile, TheCLibrarysTableMatchesElfutils) { CompareWithElfutils("/lib/x86_64-linux-gnu/libc.so.6"); }

TEST(Compile, TheCxxLibrarysTableMatchesElfutils) {
  CompareWithElfutils("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
}

TEST(Compile, ThisProgramsTableMatchesElfutils) { CompareWithElfutils("/proc/self/exe"); }

// A Go program built by `go build`, stripped and not.
class GoProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v go > /dev/null") != 0) GTEST_SKIP() << "the go command is not installed";
    std::ofstream(folder_ / "main.go") << "package main\nfunc main() { println(len(make([]int, 9))) }\n";
    ASSERT_EQ(
        std::system(fmt::format("cd {0} && export HOME={0} GO111MODULE=off GOFLAGS= && "
                                "go build -o whole main.go && go build -ldflags='-s -w' -o stripped main.go",
                                folder_.path())
                        .c_str()),
        0);
  }
  Table CompileIt(const std::string& name, RuleSet& rules) const {
    const std::string path = folder_ / name;
    const Fd fd = Open(path, O_RDONLY).value();
    return CompileFile(fd.get(), path, rules).value();
  }
  TempFolder folder_;
};

TEST_F(GoProgram, HasTheSameTableWhenStripped) {
  RuleSet rules;
  const Table whole = CompileIt("whole", rules), stripped = CompileIt("stripped", rules);
  EXPECT_GT(whole.functions, 1000);
  EXPECT_EQ(whole.malformed, 0);
  EXPECT_EQ(stripped.malformed, 0);
  EXPECT_NEAR(static_cast<double>(whole.functions), static_cast<double>(stripped.functions), 5)
      << ".debug_frame has entries for some marks in the code that are no functions";
  std::mt19937_64 generator(2);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t address = stripped.base + generator() % (stripped.pages.size() * 65536);
    const Rule& rule = RuleAt(stripped, rules, address);
    if (rule.cfa == GPUSONDE_CFA_NONE) continue;
    ASSERT_TRUE(RuleAt(whole, rules, address) == rule) << address;
  }
}

TEST_F(GoProgram, TableMatchesElfutilsExceptWhereStacksSwitch) {
  RuleSet rules;
  const Table table = CompileIt("whole", rules);
  const std::string path = folder_ / "whole";
  const Fd fd = Open(path, O_RDONLY).value();
  Dwarf* dwarf = dwarf_begin(fd.get(), DWARF_C_READ);
  ASSERT_NE(dwarf, nullptr);
  const Oracle oracle(dwarf_getcfi(dwarf));
  std::mt19937_64 generator(1);
  std::map<int, int64_t> others;  // by kind of rule
  int64_t covered = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t address = table.base + generator() % (table.pages.size() * 65536);
    const std::optional<Rule> expected = oracle.At(address);
    if (!expected.has_value() || expected->cfa != GPUSONDE_CFA_REGISTER) continue;
    const Rule& found = RuleAt(table, rules, address);
    ++covered;
    if (found.cfa != GPUSONDE_CFA_REGISTER)
      ++others[found.cfa];
    else
      ASSERT_TRUE(found == *expected)
          << fmt::format("{:#x}: {}, not {}", address, found.cfa_offset, expected->cfa_offset);
  }
  dwarf_end(dwarf);
  EXPECT_GT(covered, 5'000);
  int64_t all = 0;
  for (const auto& [kind, count] : others) all += count;
  EXPECT_LT(all, covered / 50);
  // All stack switches of this version of Go are supported.
  std::set<int> switches;
  for (const Rule& rule : rules.rules())
    if (rule.cfa == GPUSONDE_CFA_GO) switches.insert(rule.cfa_register);
  EXPECT_EQ(switches, (std::set<int>{GPUSONDE_GO_CALLER, GPUSONDE_GO_GOROUTINE, GPUSONDE_GO_THREAD,
                                     GPUSONDE_GO_CLOCK}));
}

TEST(Compile, AFileWithoutTablesHasNone) {
  EXPECT_FALSE(CompileFile(Open("/etc/passwd", O_RDONLY)->get(), "/etc/passwd", *std::make_unique<RuleSet>())
                   .has_value());
}

TEST(Compile, TranslatesAddressesThroughTheMapping) {
  const std::vector<Table::Segment> segments = {{.file_offset = 0x1000, .size = 0x5000, .address = 0x401000}};
  // The byte at 0x2345 of the file has the address 0x402345, wherever it is mapped.
  const auto bias = BiasOf(segments, 0x400000, 0x7f0000002000, 0x2000);
  ASSERT_TRUE(bias.has_value());
  EXPECT_EQ(0x7f0000002345 - *bias, 0x2345u);
  EXPECT_FALSE(BiasOf(segments, 0x400000, 0x7f0000002000, 0x9000).has_value());
}

// Sections with random damage never crash the compiler, nor give rows out of order.
TEST(Compile, DamagedSectionsGiveOrderedRows) {
  const Fd fd = Open("/lib64/ld-linux-x86-64.so.2", O_RDONLY).value();
  const std::unique_ptr<Elf, EndElf> elf = BeginElf(fd);
  ASSERT_NE(elf, nullptr);
  std::vector<std::byte> original;
  uint64_t address = 0;
  size_t names = 0;
  ASSERT_EQ(elf_getshdrstrndx(elf.get(), &names), 0);
  for (Elf_Scn* section = elf_nextscn(elf.get(), nullptr); section != nullptr;
       section = elf_nextscn(elf.get(), section)) {
    GElf_Shdr header;
    gelf_getshdr(section, &header);
    if (std::string_view(elf_strptr(elf.get(), names, header.sh_name)) != ".eh_frame") continue;
    const Elf_Data* data = elf_rawdata(section, nullptr);
    const auto* bytes = static_cast<const std::byte*>(data->d_buf);
    original.assign(bytes, bytes + data->d_size);
    address = header.sh_addr;
  }
  ASSERT_FALSE(original.empty());
  const std::vector<Table::Segment> code = {{.file_offset = 0, .size = uint64_t{1} << 30, .address = 0}};

  std::mt19937 generator(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::byte> damaged = original;
    for (int i = 0; i < 20; ++i) damaged[generator() % damaged.size()] = static_cast<std::byte>(generator());
    if (round % 4 == 0) damaged.resize(generator() % damaged.size());
    RuleSet rules;
    const auto format = round % 5 == 0 ? CfiFormat::kDebugFrame : CfiFormat::kEhFrame;
    const Result<Table> table = Compile({{damaged, address, format}}, code, rules);
    if (!table.has_value()) continue;
    for (const Table::Page& page : table->pages) {
      ASSERT_GT(page.count, 0u);
      ASSERT_EQ(table->rows[page.first] & 0xFFFF, 0u) << "every page begins with a row";
      for (uint32_t row = page.first + 1; row < page.first + page.count; ++row) {
        ASSERT_LT(table->rows[row - 1] & 0xFFFF, table->rows[row] & 0xFFFF);
        ASSERT_LT(table->rows[row] >> 16, rules.rules().size());
      }
    }
  }
}

// An .eh_frame of `functions`, 16 bytes each from address 0 on, that share `instructions` nops.
std::vector<std::byte> EhFrame(size_t functions, size_t instructions) {
  FrameBuilder builder;
  builder.Entry([&] {
    builder.Put(uint32_t{0});
    builder.Put8(1);
    for (const char c : {'z', 'R', '\0'}) builder.Put8(c);
    for (const int value : {1, 0x78, 16, 1, 0x03}) builder.Put8(value);  // 0x03: 4 bytes, absolute
    builder.bytes.resize(builder.bytes.size() + instructions);
  });
  for (uint32_t i = 0; i < functions; ++i)
    builder.Entry([&] {
      builder.Put(static_cast<uint32_t>(builder.bytes.size()));
      builder.Put(i * 16);
      builder.Put(uint32_t{16});
      builder.Put8(0);
    });
  return std::move(builder.bytes);
}

Result<Table> CompileEhFrame(const std::vector<std::byte>& section) {
  RuleSet rules;
  return Compile({{section, 0x1000, CfiFormat::kEhFrame}},
                 {{.file_offset = 0, .size = uint64_t{1} << 30, .address = 0}}, rules);
}

TEST(Compile, BoundsTheSharedInstructionsThatItRuns) {
  EXPECT_EQ(CompileEhFrame(EhFrame(1000, 7)).value().functions, 1000);
  const Result<Table> bomb = CompileEhFrame(EhFrame(5000, 100'000));
  ASSERT_FALSE(bomb.has_value()) << "half a billion instructions in 220 KB";
  EXPECT_EQ(bomb.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(bomb.error().message.find("overlap"), std::string::npos) << bomb.error().message;
}

TEST(Compile, RejectsTooManyFunctions) {
  const Result<Table> table = CompileEhFrame(EhFrame(1'000'002, 0));
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace gpusonde::unwind
