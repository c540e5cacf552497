// SPDX-License-Identifier: Apache-2.0
#include "base/ascii.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

TEST(Ascii, CaseChangesInAsciiLettersOnly) {
  EXPECT_EQ(ToLower("AZ az [@`{ 09 \xC3\x84"), "az az [@`{ 09 \xC3\x84");
  EXPECT_EQ(ToUpper("AZ az [@`{ 09 \xC3\xA4"), "AZ AZ [@`{ 09 \xC3\xA4");
}

TEST(Ascii, HexDigitsOfEitherCaseAndNothingElse) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    const size_t at = kDigits.find(c);
    EXPECT_EQ(HexDigit(c), at == std::string_view::npos ? -1 : static_cast<int>(at < 16 ? at : at - 6))
        << byte;
  }
}

}  // namespace
}  // namespace gpusonde
