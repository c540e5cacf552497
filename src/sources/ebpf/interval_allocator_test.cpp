// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/interval_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gpusonde::ebpf {
namespace {

TEST(IntervalAllocator, MergesFreedIntervals) {
  IntervalAllocator allocator(100);
  EXPECT_EQ(allocator.Allocate(40), 0u);
  EXPECT_EQ(allocator.Allocate(40), 40u);
  EXPECT_EQ(allocator.Allocate(40), std::nullopt);
  allocator.Free(0, 40);
  allocator.Free(40, 40);
  EXPECT_TRUE(allocator.IsAllFree());
  EXPECT_EQ(allocator.Allocate(100), 0u);
}

TEST(IntervalAllocator, NoTwoIntervalsOverlap) {
  std::mt19937 generator(1);
  IntervalAllocator allocator(1000);
  std::map<uint32_t, uint32_t> held;
  for (int round = 0; round < 20'000; ++round) {
    if (generator() % 2 == 0) {
      const auto size = static_cast<uint32_t>(generator() % 60 + 1);
      const auto begin = allocator.Allocate(size);
      if (!begin.has_value()) continue;
      const auto after = held.lower_bound(*begin);
      ASSERT_LE(*begin + size, after == held.end() ? 1000u : after->first);
      ASSERT_LE(after == held.begin() ? 0u : std::prev(after)->first + std::prev(after)->second, *begin);
      held[*begin] = size;
    } else if (!held.empty()) {
      const auto victim = std::next(held.begin(), static_cast<ptrdiff_t>(generator() % held.size()));
      allocator.Free(victim->first, victim->second);
      held.erase(victim);
    }
  }
  for (const auto& [begin, size] : held) allocator.Free(begin, size);
  EXPECT_TRUE(allocator.IsAllFree());
}

}  // namespace
}  // namespace gpusonde::ebpf
