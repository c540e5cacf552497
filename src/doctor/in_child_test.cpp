// SPDX-License-Identifier: Apache-2.0
#include "doctor/in_child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace gpusonde::doctor {
namespace {

TEST(InChild, ReturnsWhatTheChildReturned) {
  EXPECT_EQ(InChild([] { return std::string("hello"); }).value(), "hello");
  EXPECT_EQ(InChild([] { return std::string(); }).value(), "");
  EXPECT_EQ(InChild([] { return std::string(10'000, 'x'); }).value().size(), 10'000U);
}

TEST(InChild, OutputOfTheChildIsDiscarded) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(InChild([] {
              std::puts("noise");
              std::fflush(stdout);
              return std::string("quiet");
            }).value(),
            "quiet");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(InChild, ACrashOrHangIsAnError) {
  EXPECT_THAT(InChild([]() -> std::string { std::abort(); }).error().message, testing::HasSubstr("signal 6"));
  EXPECT_THAT(InChild([]() -> std::string { ::_exit(3); }).error().message, testing::HasSubstr("status 3"));
  EXPECT_THAT(InChild(
                  []() -> std::string {
                    for (;;) ::pause();
                  },
                  1)
                  .error()
                  .message,
              testing::HasSubstr("no response within 1 s"));
}

TEST(InChild, AnOversizedAnswerIsAnError) {
  EXPECT_FALSE(InChild([] { return std::string(1'000'000, 'x'); }).has_value());
}

}  // namespace
}  // namespace gpusonde::doctor
