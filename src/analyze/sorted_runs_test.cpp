// SPDX-License-Identifier: Apache-2.0
#include "analyze/sorted_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
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
  all.AddRun(std::span(unaligned).subspan(1), sorted.size(), nullptr);
  for (const Number& number : sorted) sum += number.value;
  ASSERT_TRUE(all.Finish().has_value());
  EXPECT_EQ(all.runs().size(), 3u + 5u + 1u);
  size_t on_disk = 0;
  for (const auto& run : all.runs()) on_disk += run.file != nullptr ? 1 : 0;
  EXPECT_EQ(on_disk, in_memory ? 0u : 7u) << "what exceeds RunMemory, but for the last records of each";
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

constexpr uint64_t kDay = 86'400'000'000'000;

// As a trace has them: kernels and streams alternate, numbers grow. With `any`, also any other values.
std::vector<GpuRecord> MakeEvents(size_t count, bool any) {
  std::mt19937_64 random(3);
  std::vector<GpuRecord> events;
  int64_t start_ns = 1'700'000'000'000'000'000;
  for (size_t i = 0; i < count; ++i) {
    const auto kernel = static_cast<uint32_t>(random() % 40);
    start_ns += static_cast<int64_t>(random() % 60'000) - 10'000;
    GpuRecord& event = events.emplace_back();
    event = {.start_ns = start_ns,
             .correlation = static_cast<uint32_t>(3 * i),
             .stream = 7 + kernel % 3,
             .name = kernel / 2,
             .shape = kernel % 2 == 0 ? 0x12345678 : 0x9ABCDEF0,
             .has_correlation = 1};
    auto duration_ns = static_cast<int64_t>(random() % 40'000);
    if (any && random() % 2 == 0) {
      const uint64_t bits = random() >> random() % 64;
      event.start_ns = static_cast<int64_t>(random() >> 3);
      event.correlation = static_cast<uint32_t>(bits);
      event.name = static_cast<uint32_t>(random() % 3'000);
      event.bytes = static_cast<uint32_t>(random());
      event.rank = static_cast<uint16_t>(random());
      event.has_correlation = static_cast<uint8_t>(random() % 2);
      duration_ns = static_cast<int64_t>(bits % kDay);
    }
    event.end_ns = event.start_ns + duration_ns;
  }
  return events;
}

// The bytes of a record that several equal ones may have in any order.
bool IsEqual(const GpuRecord& a, const GpuRecord& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Whether what is packed and read is what was added, where `file` says; returns the bytes that a record took.
double BytesOfEach(std::vector<GpuRecord> events, bool on_disk) {
  const std::optional<RunMemory> taken = RunMemory::Take(on_disk ? RunMemory::kMaxBytes : 0);
  EXPECT_TRUE(taken.has_value());
  SortedRuns<GpuRecord, ByCorrelation> runs(std::make_shared<TemporaryFile>());
  for (const GpuRecord& event : events) runs.Add(event);
  runs.Spill();
  EXPECT_TRUE(runs.Finish().has_value());
  if (!on_disk) runs.Pack();
  double bytes = 0;
  for (const auto& run : runs.runs()) {
    bytes += static_cast<double>(run.bytes);
    EXPECT_EQ(run.file != nullptr, on_disk);
  }
  const double count = static_cast<double>(events.size());
  std::ranges::sort(events, ByCorrelation());
  Merged<GpuRecord, ByCorrelation> merged(runs.runs());
  size_t seen = 0;
  while (const GpuRecord* next = merged.Next()) {
    if (seen == events.size() || !IsEqual(*next, events[seen])) ADD_FAILURE() << "record " << seen;
    ++seen;
  }
  EXPECT_TRUE(merged.status().has_value());
  EXPECT_EQ(seen, events.size());
  return bytes / count;
}

TEST(SortedRuns, PackedRecordsAreReadAsTheyWere) {
  for (const bool on_disk : {false, true}) {
    EXPECT_LT(BytesOfEach(MakeEvents(120'000, /*any=*/false), on_disk), 9);
    EXPECT_LE(BytesOfEach(MakeEvents(60'000, /*any=*/true), on_disk), Packing<GpuRecord>::kMaxBytes);
  }
}

TEST(SortedRuns, DamagedBytesAreAnErrorOrOtherRecords) {
  SortedRuns<GpuRecord, ByCorrelation> whole(std::make_shared<TemporaryFile>());
  for (const GpuRecord& event : MakeEvents(2'000, /*any=*/true)) whole.Add(event);
  ASSERT_TRUE(whole.Finish().has_value());
  whole.Pack();
  const auto& run = whole.runs().front();
  std::vector<std::byte> bytes(run.bytes);
  ASSERT_TRUE(CopyBytes(run, 0, std::span(bytes)).has_value());
  const auto count_of = [&run](std::span<const std::byte> damaged) -> std::optional<size_t> {
    SortedRuns<GpuRecord, ByCorrelation> runs(std::make_shared<TemporaryFile>());
    runs.AddRun(damaged, run.count, nullptr);
    Merged<GpuRecord, ByCorrelation> merged(runs.runs());
    size_t count = 0;
    while (merged.Next() != nullptr) ++count;
    return merged.status().has_value() ? std::optional(count) : std::nullopt;
  };
  EXPECT_EQ(count_of(bytes), run.count);
  for (size_t kept = 0; kept < bytes.size(); kept += 997)
    EXPECT_EQ(count_of(std::span(bytes).first(kept)), std::nullopt) << kept << " bytes";
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int i = 0; i < 20; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    const std::optional<size_t> count = count_of(damaged);
    EXPECT_TRUE(!count.has_value() || *count == run.count);
  }
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
