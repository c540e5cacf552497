// SPDX-License-Identifier: Apache-2.0
#include "base/log_limiter.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

TEST(LogLimiter, AdmitsABurstThenWithholdsAndReportsHowMany) {
  LogLimiter limiter;
  const int here = 0, there = 0;
  for (int i = 0; i < LogLimiter::kBurst; ++i) EXPECT_TRUE(limiter.Admit(&here, 5).admitted);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(limiter.Admit(&here, LogLimiter::kPeriodNs).admitted);
  EXPECT_TRUE(limiter.Admit(&there, 6).admitted);  // another place has a burst of its own
  EXPECT_EQ(limiter.withheld(), 1000);
  const LogLimiter::Verdict later = limiter.Admit(&here, 5 + LogLimiter::kPeriodNs);
  EXPECT_TRUE(later.admitted);
  EXPECT_EQ(later.withheld, 1000);
  EXPECT_EQ(limiter.withheld(), 0);
}

}  // namespace
}  // namespace gpusonde
