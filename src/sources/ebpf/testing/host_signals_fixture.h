// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/testing/refused.h"
#include "base/time.h"
#include "sources/ebpf/host_signals.h"

namespace gpusonde::ebpf {

// Follows this process; skipped where BPF isn't permitted.
class HostSignalsFixture : public testing::Test {
 protected:
  void SetUp() override {
    Result<HostSignals> signals = HostSignals::Create();
    SKIP_WHERE_REFUSED(signals);
    signals_ = std::move(*signals);
    ASSERT_TRUE(signals_->Follow(::getpid()).has_value());
  }

  // Children that exist already are not followed then.
  void StartAgain() {
    signals_ = *HostSignals::Create();
    ASSERT_TRUE(signals_->Follow(::getpid()).has_value());
  }

  // Adds this thread's sums since the last call.
  void Drain() {
    ASSERT_TRUE(signals_
                    ->Drain(sources::VisitOnly([&](const SignalSum& sum) {
                      if (sum.tid == ::gettid()) by_signal_[sum.signal] += sum.amount;
                      if (sum.signal <= GPUSONDE_SIGNAL_NETWORK) sums_[sum.tid] += sum.amount;
                      if (sum.tid == ::gettid() && sum.signal == GPUSONDE_SIGNAL_RUN_QUEUE)
                        behind_[sum.other] += sum.amount;
                    }))
                    .has_value());
  }

  // For how long this thread has waited for the process since the last drain, ns.
  int64_t DrainWaitsFor(int32_t other, gpusonde_signal signal = GPUSONDE_SIGNAL_WAITING) {
    int64_t waited_ns = 0;
    const auto add = [&](const SignalSum& sum) {
      if (sum.tid == ::gettid() && sum.signal == signal && sum.other == other) waited_ns += sum.amount;
    };
    EXPECT_TRUE(signals_->Drain(sources::VisitOnly(add)).has_value());
    return waited_ns;
  }

  std::optional<HostSignals> signals_;
  std::map<gpusonde_signal, int64_t> by_signal_;
  std::map<int32_t, int64_t> behind_;
  std::map<int32_t, int64_t> sums_;  // of a thread's time
};

inline void Burn(int64_t duration_ns) {
  const int64_t until_ns = MonotonicNow() + duration_ns;
  while (MonotonicNow() < until_ns) {
  }
}

}  // namespace gpusonde::ebpf
