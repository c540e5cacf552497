// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/io_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gpusonde::proc {
namespace {

TEST(IoLimits, ParsesBothVersionsOfCgroupsToTheSame) {
  IoByDevice first;
  AddIoLimitsV1("254:0 8388608\n8:16 1000\n", IoAmounts::kReadBytes, first);
  AddIoLimitsV1("254:0 50\n", IoAmounts::kWrites, first);
  const IoByDevice second = ParseIoLimits(
      "254:0 rbps=8388608 wbps=max riops=max wiops=50\n8:16 rbps=1000 wbps=max riops=max wiops=max\n");
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first.at("254:0").of, second.at("254:0").of);
  EXPECT_EQ(first.at("8:16").of, second.at("8:16").of);
  EXPECT_EQ(second.at("254:0").of, (std::array<int64_t, 4>{8388608, 0, 0, 50}));

  IoByDevice use;
  AddIoUseV1("254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 1\n254:0 Total 12288\nTotal 12288\n", false, use);
  AddIoUseV1("254:0 Read 1\n254:0 Write 2\n", true, use);
  EXPECT_EQ(use.at("254:0").of,
            ParseIoUse("254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n").at("254:0").of);
}

TEST(IoLimits, IgnoresLinesThatAreNotLimits) {
  IoByDevice limits;
  AddIoLimitsV1("", IoAmounts::kReads, limits);
  AddIoLimitsV1("254:0\n254:0 -5\n254:0 12x\n 7\nTotal 3\n", IoAmounts::kReads, limits);
  EXPECT_TRUE(limits.empty());
  EXPECT_TRUE(ParseIoLimits("rbps=5\n\n").empty());
  EXPECT_EQ(ParseIoLimits("8:0 rbps wbps= unknown=7 riops=99999999999999999999\n").at("8:0").of,
            IoAmounts{}.of);
}

TEST(IoLimits, WithoutALimitNothingIsThrottled) {
  EXPECT_TRUE(IoLimits::Of(INT32_MAX).empty());
  IoLimits own = IoLimits::Of(::getpid());
  EXPECT_EQ(own.TakeThrottledNs(), std::nullopt);
  EXPECT_EQ(own.TakeThrottledNs(), 0);
}

}  // namespace
}  // namespace gpusonde::proc
