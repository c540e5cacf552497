// SPDX-License-Identifier: Apache-2.0
#include "analyze/sorted_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "analyze/records.h"

namespace gpusonde::analyze {
namespace {

struct Number {
  uint64_t value = 0;
};
struct Smaller {
  static uint64_t Radix(const Number& number) { return number.value; }
  bool operator()(const Number& a, const Number& b) const { return a.value < b.value; }
};
using Runs = SortedRuns<Number, Smaller>;

void GiveBackEveryRecord(bool in_memory) {
  std::mt19937_64 random(1);
  const auto file = std::make_shared<TemporaryFile>();
  Runs all(file);
  uint64_t sum = 0;
  const size_t count = Runs::kRunRecords * 2 + 12'345;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = random() % 1'000'000'007;
    sum += value;
    all.Add({value});
  }
  Runs another(file);
  for (uint64_t value = 0; value < 1'000; ++value) {
    another.Add({value});
    sum += value;
    if (value % 300 == 0) another.Spill();
  }
  all.Take(std::move(another), std::make_shared<const NoChange>());
  std::vector<Number> sorted;
  for (uint64_t value = 0; value < 1'000; ++value) sorted.push_back({value * 1'000'003});
  std::vector<std::byte> unaligned(1);
  std::ranges::copy(std::as_bytes(std::span(sorted)), std::back_inserter(unaligned));
  all.AddSorted(std::span(unaligned).subspan(1));
  for (const Number& number : sorted) sum += number.value;
  ASSERT_TRUE(all.Finish().has_value());
  EXPECT_EQ(all.runs().size(), 3u + 5u + 1u);
  size_t on_disk = 0;
  for (const auto& run : all.runs()) on_disk += run.file != nullptr ? 1 : 0;
  EXPECT_EQ(on_disk, in_memory ? 4u : 7u) << "those of Spill, and what exceeds RunMemory";
  Merged<Number, Smaller> merged(all.runs());
  uint64_t last = 0;
  size_t seen = 0;
  while (const Number* next = merged.Next()) {
    ASSERT_GE(next->value, last);
    last = next->value;
    sum -= last;
    ++seen;
  }
  EXPECT_TRUE(merged.status().has_value());
  EXPECT_EQ(seen, count + 2'000);
  EXPECT_EQ(sum, 0u);
}

TEST(SortedRuns, GiveBackEveryRecordInOrderHoweverManyRuns) { GiveBackEveryRecord(/*in_memory=*/true); }

TEST(SortedRuns, GiveBackWhatIsOnDiskLikewise) {
  const std::optional<RunMemory> all = RunMemory::Take(RunMemory::kMaxBytes);
  ASSERT_TRUE(all.has_value());
  GiveBackEveryRecord(/*in_memory=*/false);
}

TEST(SortedRuns, FreedMemoryCanBeTakenAgain) {
  for (int round = 0; round < 3; ++round) {
    std::optional<RunMemory> all = RunMemory::Take(RunMemory::kMaxBytes);
    ASSERT_TRUE(all.has_value());
    EXPECT_FALSE(RunMemory::Take(1).has_value());
    const RunMemory moved = *std::move(all);
    EXPECT_FALSE(RunMemory::Take(1).has_value());
  }
}

TEST(SortedRuns, OfNothingGiveNothing) {
  Runs none(std::make_shared<TemporaryFile>());
  ASSERT_TRUE(none.Finish().has_value());
  Merged<Number, Smaller> merged(none.runs());
  EXPECT_EQ(merged.Next(), nullptr);
}

// Orders by the upper half first, as RecordSorter sorts by radix, and then by the lower.
struct ByHalves {
  static uint64_t Radix(const Number& number) { return number.value >> 32; }
  bool operator()(const Number& a, const Number& b) const { return a.value < b.value; }
};

TEST(RecordSorter, SortsWhateverTheOrderWas) {
  std::mt19937_64 random(2);
  const auto check = [](std::vector<Number> numbers) {
    std::vector<Number> sorted = numbers;
    RecordSorter<Number, ByHalves>().Sort(numbers);
    std::ranges::sort(sorted, ByHalves());
    ASSERT_EQ(numbers.size(), sorted.size());
    for (size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(numbers[i].value, sorted[i].value) << i;
  };
  check({});
  check({{7}});
  check(std::vector<Number>(1'000, Number{5}));
  for (const uint64_t range : {uint64_t{10}, uint64_t{1} << 33, uint64_t{1} << 40, ~uint64_t{0}}) {
    std::vector<Number> numbers;
    for (int i = 0; i < 10'000; ++i) numbers.push_back({random() % range});
    check(numbers);
    std::ranges::sort(numbers, ByHalves());
    check(numbers);
    for (int i = 0; i < 500; ++i) {  // nearly sorted
      const size_t at = random() % (numbers.size() - 3);
      std::swap(numbers[at], numbers[at + random() % 3]);
    }
    check(numbers);
    std::ranges::reverse(numbers);
    check(numbers);
  }
}

}  // namespace
}  // namespace gpusonde::analyze
