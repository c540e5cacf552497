// SPDX-License-Identifier: Apache-2.0
#include "symbols/kernel_symbols.h"

#include <gtest/gtest.h>

namespace gpusonde::symbols {
namespace {

constexpr std::string_view kText =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000100 t do_work\n"
    "ffffffff81000180 D some_data\n"
    "not a line\n"
    "ffffffffc0000040 t first\t[nvidia]\n"
    "ffffffffc0000080 T second\t[nvidia]\n";

TEST(KernelSymbols, OffsetsCountFromTheModulesFirstSymbol) {
  const KernelSymbols symbols = KernelSymbols::Parse(kText).value();
  const KernelSymbol work = symbols.Find(0xffffffff81000190).value();
  EXPECT_EQ(work.name, "do_work");
  EXPECT_EQ(work.module, "vmlinux");
  EXPECT_EQ(work.module_offset, 0x190u);
  const KernelSymbol second = symbols.Find(0xffffffffc0000081).value();
  EXPECT_EQ(second.name, "second");
  EXPECT_EQ(second.module, "nvidia");
  EXPECT_EQ(second.module_offset, 0x41u);
}

TEST(KernelSymbols, AddressesFarFromAnyFunctionHaveNone) {
  const KernelSymbols symbols = KernelSymbols::Parse(kText).value();
  EXPECT_FALSE(symbols.Find(0x1000).has_value());
  EXPECT_FALSE(symbols.Find(0xffffffffd0000000).has_value());
}

TEST(KernelSymbols, HiddenAddressesAreAPermissionProblem) {
  EXPECT_EQ(KernelSymbols::Parse("0000000000000000 T _stext\n").error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(KernelSymbols::Parse("nonsense").error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::symbols
