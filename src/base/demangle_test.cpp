// SPDX-License-Identifier: Apache-2.0
#include "base/demangle.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace gpusonde
