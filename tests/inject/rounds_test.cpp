// SPDX-License-Identifier: Apache-2.0
// The agent's rounds with the inject library in a child process (client.cpp).
#include <sys/wait.h>

#include "agent/collector.h"
#include "base/testing/refused.h"
#include "base/time.h"
#include "harness.h"

namespace gpusonde::agent {
namespace {

// Agents profile programs with their own library only.
constexpr const char* kAgentsLibrary = "CUDA_INJECTION64_PATH=" GPUSONDE_INJECT_LIBRARY;

class Rounds : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    Result<Collector> created =
        Collector::Create({.frequency_hz = 19, .every_process = every_process(), .command = "test"});
    SKIP_WHERE_REFUSED(created);
    collector_.emplace(std::move(*created));
  }
  static bool every_process() { return GetParam(); }

  // A recorded program reports through its socket, others through probes.
  cupti::Client Start(const std::vector<std::string>& steps) {
    if (every_process()) return {steps, {kAgentsLibrary}};
    GpuChannel ear = collector_->MakeGpuChannel().value();
    ear.environment.emplace_back(kAgentsLibrary);
    return {steps, ear.environment, [&](int32_t pid) {
              EXPECT_TRUE(collector_->Follow(pid).has_value());
              EXPECT_TRUE(collector_->AttachGpuProgram(pid).has_value());
            }};
  }

  std::optional<Collector> collector_;
};

TEST_P(Rounds, FollowTheFlushesOfTheProgram) {
  constexpr int kMinMs = 100, kMaxMs = 2000;
  const cupti::Client client = Start({"rate=160,6", "exit=0"});
  const int64_t begin_ns = MonotonicNow();
  int rounds = 0;
  while (MonotonicNow() < begin_ns + 4 * kNanosPerSecond) {
    const int64_t before_ns = MonotonicNow();
    collector_->Wait(kMinMs, kMaxMs);
    EXPECT_GE(MonotonicNow() - before_ns, (kMinMs - 1) * kNanosPerMilli);
    ASSERT_TRUE(collector_->Poll().has_value());
    ++rounds;
  }
  EXPECT_GE(rounds, 8)
      << "it flushes four times a second; without wake-ups there would be two or three rounds";
  int status = 0;
  EXPECT_EQ(::waitpid(client.pid(), &status, 0), client.pid());
  EXPECT_EQ(status, 0);
}

TEST_P(Rounds, LastTheirMaximumWithoutGpuWork) {
  const int64_t before_ns = MonotonicNow();
  collector_->Wait(100, 700);
  EXPECT_GE(MonotonicNow() - before_ns, 690 * kNanosPerMilli);
}

INSTANTIATE_TEST_SUITE_P(By, Rounds, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Probes" : "Socket"; });

}  // namespace
}  // namespace gpusonde::agent
