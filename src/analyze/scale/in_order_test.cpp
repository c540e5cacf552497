// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/in_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <string>
#include <vector>

namespace gpusonde::analyze {
namespace {

TEST(MakeInOrder, ThingsArePassedOnInOrderAndFewAreInProgress) {
  constexpr size_t kCount = 500;
  for (const size_t threads : {1u, 2u, 7u}) {
    std::atomic<size_t> begun = 0;
    std::vector<size_t> taken;
    const auto make = [&](size_t i) -> Result<size_t> {
      ++begun;
      if (i % 10 == 0) std::this_thread::yield();
      return i;
    };
    size_t most = 0;
    const auto take = [&](size_t i) {
      most = std::max(most, begun - taken.size());
      taken.push_back(i);
    };
    ASSERT_TRUE(MakeInOrder<size_t>(kCount, threads, make, take).has_value());
    std::vector<size_t> expected(kCount);
    std::iota(expected.begin(), expected.end(), size_t{0});
    EXPECT_EQ(taken, expected);
    EXPECT_LE(most, 2 * threads);
  }
}

TEST(MakeInOrder, OfSeveralFailuresTheFirstIsReturned) {
  for (const size_t threads : {1u, 2u, 7u}) {
    const auto make = [](size_t i) -> Result<size_t> {
      if (i >= 20) return Fail(ErrorCode::kIo, std::to_string(i));
      return i;
    };
    const Status done = MakeInOrder<size_t>(100, threads, make, [](size_t i) { EXPECT_LT(i, 20u); });
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().message, "20");
  }
}

TEST(MakeInOrder, ZeroThingsAreFine) {
  const auto make = [](size_t) -> Result<size_t> { return Fail(ErrorCode::kInternal, "called"); };
  EXPECT_TRUE(MakeInOrder<size_t>(0, 4, make, [](size_t) {}).has_value());
}

}  // namespace
}  // namespace gpusonde::analyze
