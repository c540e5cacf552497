// SPDX-License-Identifier: Apache-2.0
// The ring in which finished parts of sums are reported (bpf/sums.h).
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/refused.h"
#include "base/time.h"
#include "sources/ebpf/host_signals.h"

namespace gpusonde::ebpf {
namespace {

TEST(SignalParts, PartsWithoutRoomAreAddedToSums) {
  constexpr uint32_t kPartBytes = 4096;  // some hundred parts
  Result<HostSignals> signals = HostSignals::Create(kPartBytes);
  SKIP_WHERE_REFUSED(signals);
  ASSERT_TRUE(signals->Follow(::getpid()).has_value());
  ::usleep(1000);  // this thread is switched out, and so known
  const int64_t begin_ns = MonotonicNow();
  constexpr int64_t kLengthNs = 2 * kNanosPerSecond;
  while (MonotonicNow() < begin_ns + kLengthNs)
    ::usleep(3000);  // two parts a bucket, and two hundred buckets
  const auto drain = [&] {
    int64_t asleep_ns = 0;
    EXPECT_TRUE(signals
                    ->Drain(sources::VisitOnly([&](const SignalSum& sum) {
                      if (sum.tid == ::gettid() && sum.signal == GPUSONDE_SIGNAL_SLEEPING)
                        asleep_ns += sum.amount;
                    }))
                    .has_value());
    return asleep_ns;
  };
  EXPECT_GT(drain(), kLengthNs / 2) << "on a busy machine it often waits for a CPU";
  EXPECT_LT(drain(), kLengthNs / 10) << "reported twice";
  EXPECT_EQ(signals->DrainDrops().Of(model::DropReason::kSignalsLost), 0);
}

}  // namespace
}  // namespace gpusonde::ebpf
