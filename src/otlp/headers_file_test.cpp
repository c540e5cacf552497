// SPDX-License-Identifier: Apache-2.0
#include "otlp/headers_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/testing/temp_folder.h"

namespace gpusonde::otlp {
namespace {

class HeadersFile : public testing::Test {
 protected:
  Result<std::vector<net::HttpHeader>> Read(std::string_view content) {
    EXPECT_TRUE(WriteFileAtomically(folder_ / "headers", content).has_value());
    return ReadHeaders(folder_ / "headers");
  }
  std::string Refusal(std::string_view content) {
    const auto headers = Read(content);
    EXPECT_FALSE(headers.has_value()) << content;
    return headers.has_value() ? "" : headers.error().message;
  }

  TempFolder folder_;
};

TEST_F(HeadersFile, HasAHeaderALine) {
  const auto headers = Read("# of the collector\nAuthorization: Bearer a:b \r\n\nX-Scope-OrgID:7");
  ASSERT_TRUE(headers.has_value()) << headers.error().message;
  ASSERT_EQ(headers->size(), 2u);
  EXPECT_EQ((*headers)[0].name, "Authorization");
  EXPECT_EQ((*headers)[0].value, "Bearer a:b");
  EXPECT_EQ((*headers)[1].name, "X-Scope-OrgID");
  EXPECT_EQ((*headers)[1].value, "7");
  EXPECT_TRUE(Read("")->empty());
}

TEST_F(HeadersFile, IsRefusedWithTheLineAndWithoutItsText) {
  for (const std::string_view bad :
       {"Authorization Bearer s3cret", ": s3cret", "a b: s3cret", "A: s3cret\x01", "A: s3cret\xC3\xA4",
        "Content-Length: 3", "HOST: s3cret", "te: s3cret"}) {
    const std::string refusal = Refusal("X: 1\n" + std::string(bad));
    EXPECT_THAT(refusal, testing::HasSubstr("line 2 of " + (folder_ / "headers")));
    EXPECT_THAT(refusal, testing::Not(testing::HasSubstr("s3cret")));
  }
}

TEST_F(HeadersFile, IsBounded) {
  std::string many;
  for (int i = 0; i < 33; ++i) many += "X: 1\n";
  EXPECT_THAT(Refusal(many), testing::HasSubstr("more than 32"));
  EXPECT_THAT(Refusal(std::string(17 << 10, '#')), testing::HasSubstr("16384 bytes"));
}

}  // namespace
}  // namespace gpusonde::otlp
