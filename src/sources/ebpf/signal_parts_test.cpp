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
  constexpr uint32_t kPartBytes = 4096;  // a hundred parts
  Result<HostSignals> signals = HostSignals::Create(kPartBytes);
  SKIP_WHERE_REFUSED(signals);
  ASSERT_TRUE(signals->Follow(::getpid()).has_value());
  ::usleep(1000);  // this thread is switched out, and so known
  // Sleeps are counted, not the time that they take: a busy machine adds waits for a CPU to each. They are
  // spread over at least 150 buckets, each of which has a part of the sleeps and one of the time between
  // them.
  constexpr int kSleeps = 500;
  constexpr int64_t kSleepNs = 3 * kNanosPerMilli;
  for (int i = 0; i < kSleeps; ++i) ::usleep(kSleepNs / kNanosPerMicro);
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
  EXPECT_GT(drain(), kSleeps * kSleepNs * 9 / 10) << "some switches may not be seen";
  EXPECT_LT(drain(), kSleeps * kSleepNs / 10) << "reported twice";
  EXPECT_EQ(signals->DrainDrops().Of(model::DropReason::kSignalsLost), 0);
}

}  // namespace
}  // namespace gpusonde::ebpf
