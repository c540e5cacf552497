// SPDX-License-Identifier: Apache-2.0
#include "doctor/in_child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/time.h"

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

TEST(InChild, AnAnswerThatIsTooLongIsAnError) {
  EXPECT_EQ(InChild([] { return std::string(100'000, 'x'); }).error().message,
            "its answer is longer than 65536 bytes");
}

TEST(InChild, ASignalDoesNotExtendTheWait) {
  struct sigaction action{}, before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 200'000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &soon, nullptr), 0);
  const int64_t begin_ns = MonotonicNow();
  EXPECT_FALSE(InChild(
                   []() -> std::string {
                     ::sleep(10);
                     return "late";
                   },
                   1)
                   .has_value());
  EXPECT_LT(MonotonicNow() - begin_ns, 5 * kNanosPerSecond);
  ::sigaction(SIGALRM, &before, nullptr);
}

// As when a driver hangs in the exit of a process, which has closed its descriptors before.
TEST(InChild, AChildThatDoesNotEndIsAnError) {
  const int64_t begin_ns = MonotonicNow();
  const Result<std::string> answer = InChild(
      []() -> std::string {
        ::close_range(STDERR_FILENO + 1, ~0U, 0);
        ::sleep(60);
        return "late";
      },
      1);
  ASSERT_FALSE(answer.has_value());
  EXPECT_THAT(answer.error().message, testing::HasSubstr("did not end"));
  EXPECT_LT(MonotonicNow() - begin_ns, 30 * kNanosPerSecond);
}

TEST(InChild, AnOversizedAnswerIsAnError) {
  EXPECT_FALSE(InChild([] { return std::string(1'000'000, 'x'); }).has_value());
}

}  // namespace
}  // namespace gpusonde::doctor
