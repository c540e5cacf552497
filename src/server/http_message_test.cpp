// SPDX-License-Identifier: Apache-2.0
#include "server/http_message.h"

#include <gtest/gtest.h>

#include <string>

namespace gpusonde::server {
namespace {

TEST(ErrorMessage, IsFoundInWhatErrorResponseMakes) {
  const HttpResponse response = ErrorResponse({ErrorCode::kNotFound, "no \"such\" thing"});
  EXPECT_EQ(ErrorMessageOf(*response.body), "no \"such\" thing");
}

TEST(ErrorMessage, IsEmptyOfAnyOtherAnswer) {
  for (const char* const body : {"", "<html>", "[]", "{}", R"({"error":7})", R"({"error":{}})",
                                 R"({"error":{"message":7}})", R"({"error":{"message":null}})"})
    EXPECT_EQ(ErrorMessageOf(body), "") << body;
  // Whose copy would exhaust the stack.
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  EXPECT_EQ(ErrorMessageOf(R"({"error":{"message":)" + deep + "}}"), "");
}

}  // namespace
}  // namespace gpusonde::server
