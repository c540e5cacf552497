// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace gpusonde {
namespace {

TEST(Demangle, LeavesOtherNamesAlone) {
  EXPECT_EQ(Demangle("main"), "main");
  EXPECT_EQ(Demangle("_ZN3foo3barEv"), "foo::bar()");
  EXPECT_EQ(Demangle("_Znot a name"), "_Znot a name");
  EXPECT_EQ(Demangle("_ZN3foo3barEv@plt"), "foo::bar()@plt");
  const std::string hostile = "_Z" + std::string(100'000, 'N');
  EXPECT_EQ(Demangle(hostile), hostile);
}

TEST(Demangle, KnowsBothSchemesOfRust) {
  EXPECT_EQ(
      Demangle("_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$17h0123456789abcdefE"),
      "core::ops::function::FnOnce::call_once{{vtable.shim}}");
  EXPECT_EQ(Demangle("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(Demangle("_RNvNtCs1234_7mycrate3foo3bar@plt"), "mycrate::foo::bar@plt");
  EXPECT_EQ(Demangle("_R"), "_R");
  EXPECT_EQ(Demangle("_Reader"), "_Reader");
}

// Each tuple has the one before twice, by a reference to its position after "_R".
std::string Tuples(int count) {
  const auto base62 = [](size_t value) {
    constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string text;
    for (--value; text.empty() || value > 0; value /= 62) text.insert(0, 1, kDigits[value % 62]);
    return text + "_";
  };
  std::string name = "IC1a";
  size_t before = name.size();
  name += "TuuE";
  for (int i = 1; i < count; ++i) {
    const std::string reference = "B" + base62(before);
    before = name.size();
    name.append("T").append(reference).append(reference).append("E");
  }
  return "_R" + name + "E";
}

TEST(Demangle, RustNamesThatGrowWithoutBoundAreLeftAlone) {
  EXPECT_EQ(Demangle(Tuples(2)), "a::<((), ()), (((), ()), ((), ()))>");
  EXPECT_EQ(Demangle(Tuples(60)), Tuples(60));
}

}  // namespace
}  // namespace gpusonde
