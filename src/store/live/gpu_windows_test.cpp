// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/gpu_windows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>

#include "base/testing/temp_folder.h"
#include "base/testing/units.h"
#include "model/sketch.h"
#include "model/tables/api_calls.h"
#include "model/tables/devices.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/graph_nodes.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/processes.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "store/duckdb/connection.h"
#include "store/live/live_store.h"
#include "store/memory_limit.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_query.h"
#include "store/queries/usage_query.h"
#include "store/recordings/recording.h"
#include "store/rollups/recorded_sums.h"

namespace gpusonde::store {
namespace {

using model::Sketch;
using testing::ElementsAre;
using testing::SizeIs;

constexpr Id128 kSpool{1, 2};
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kHourNs = 60 * kMinute;
constexpr int64_t kMidnightNs = int64_t{20'000} * 24 * kHourNs;

// The same rows in a store with windows, and in one that has none: both have to answer alike.
class GpuWindowsTest : public testing::Test {
 protected:
  void SetUp() override {
    plain_ = CreateInMemory().value();
    Reopen();
  }
  void Reopen() {
    live_.reset();
    auto opened = LiveStore::Open(folder_ / "live", {.epoch_now = [this] { return clock_ns_; }});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    live_ = std::move(*opened);
  }

  template <class Table>
  static model::Batch RowsOf(const Table& table, const std::vector<typename Table::Row>& rows) {
    model::BatchBuilder builder(table);
    for (const auto& row : rows) builder.Append(row);
    return builder.Take();
  }
  void Commit(int64_t day_ns, const std::vector<model::Batch>& batches) { Commit(day_ns, batches, batches); }
  void Commit(int64_t day_ns, const std::vector<model::Batch>& live, const std::vector<model::Batch>& plain) {
    const Status kept = live_->Commit(DayOf(day_ns), kSpool, sequence_, live);
    ASSERT_TRUE(kept.has_value()) << kept.error().message;
    sequence_ += std::ssize(live);
    const Status appended = plain_->Append(plain);
    ASSERT_TRUE(appended.has_value()) << appended.error().message;
  }
  // The kernels as an agent writes them that never pauses.
  static std::vector<model::KernelPack> Packed(const std::vector<model::Kernel>& kernels) {
    using Key = std::tuple<Id128, Id128, int64_t, std::string, int64_t, bool>;
    std::map<Key, model::KernelPack> packs;
    for (const model::Kernel& kernel : kernels) {
      const int64_t second_ns = kernel.start_ns - kernel.start_ns % kSecond;
      model::KernelPack& pack = packs[{kernel.process, kernel.device, kernel.stream, kernel.name, second_ns,
                                       kernel.graph_node.has_value()}];
      pack.process = kernel.process;
      pack.device = kernel.device;
      pack.session = kernel.session;
      pack.stream = kernel.stream;
      pack.name = kernel.name;
      pack.start_ns = second_ns;
      pack.end_ns = std::max(pack.end_ns, kernel.end_ns);
      ++pack.count;
      pack.duration_ns += kernel.end_ns - kernel.start_ns;
      pack.offsets_ns.push_back(kernel.start_ns - second_ns);
      pack.durations_ns.push_back(kernel.end_ns - kernel.start_ns);
      pack.correlations.push_back(kernel.correlation);
      if (kernel.graph_node.has_value()) pack.graph_nodes.push_back(*kernel.graph_node);
    }
    std::vector<model::KernelPack> rows;
    for (auto& [key, pack] : packs) rows.push_back(std::move(pack));
    return rows;
  }
  void CommitNames(int64_t day_ns) {
    Commit(day_ns,
           {RowsOf(model::kSources, {{.source = {9, 9},
                                      .host = "here",
                                      .started_ns = kMidnightNs,
                                      .ended_ns = kMidnightNs + 30 * kHourNs}}),
            RowsOf(model::kProcesses, {{.process = {5, 1}, .source = {9, 9}, .pid = 1},
                                       {.process = {5, 2}, .source = {9, 9}, .pid = 2}}),
            RowsOf(model::kDevices, {{.device = {6, 0}, .uuid = "a"}, {.device = {6, 1}, .uuid = "b"}}),
            RowsOf(model::kStacks, {{{4, 0}, {}}, {{4, 1}, {}}, {{4, 2}, {}}}),
            RowsOf(model::kGraphNodes, {{.process = {5, 1}, .session = 1, .node = 3, .stack = Id128{4, 2}}}),
            RowsOf(model::kGpuSessions, {{.process = {5, 1}, .session = 1, .start_ns = kMidnightNs},
                                         {.process = {5, 2}, .session = 1, .start_ns = kMidnightNs}})});
  }
  // A kernel, and for one of four its launch.
  void Launch(int64_t start_ns, std::vector<model::Kernel>& kernels, std::vector<model::ApiCall>& calls) {
    const uint64_t number = ++launches_;
    kernels.push_back({.process = {5, 1 + number % 2},
                       .device = {6, number % 3 % 2},
                       .session = 1,
                       .correlation = static_cast<int64_t>(number),
                       .stream = static_cast<int64_t>(number % 2),
                       .start_ns = start_ns,
                       .end_ns = start_ns + static_cast<int64_t>(number * 7919 % 40) * kSecond / 10,
                       .name = "kernel" + std::to_string(number % 5)});
    if (number % 11 == 0) kernels.back().graph_node = 3;
    if (number % 4 != 0) return;
    calls.push_back({.process = kernels.back().process,
                     .tid = static_cast<int32_t>(number % 2),
                     .session = 1,
                     .correlation = static_cast<int64_t>(number),
                     .start_ns = start_ns - 1000,
                     .end_ns = start_ns,
                     .stack = Id128{4, number / 4 % 3},
                     .probability = 0.25});
  }
  void CommitLaunches(int64_t day_ns, const std::vector<int64_t>& starts) {
    std::vector<model::Kernel> kernels;
    std::vector<model::ApiCall> calls;
    for (const int64_t start_ns : starts) Launch(start_ns, kernels, calls);
    const model::Batch api_calls = RowsOf(model::kApiCalls, calls);
    const std::vector<model::Batch> rows = {RowsOf(model::kKernels, kernels), api_calls};
    if (packed_)
      Commit(day_ns, {RowsOf(model::kKernelPacks, Packed(kernels)), api_calls}, rows);
    else
      Commit(day_ns, rows);
  }

  int64_t Number(const std::string& sql) {
    auto rows = live_->Query(sql);
    EXPECT_TRUE(rows.has_value()) << rows.error().message;
    return rows.has_value() && (*rows)->Next().value_or(false) ? (*rows)->Int64(0) : -1;
  }

  using Key = std::tuple<std::string, size_t, int32_t, int32_t, int64_t, bool, bool>;
  static std::map<Key, std::pair<int64_t, int64_t>> Lines(const model::Profile& profile) {
    std::map<Key, std::pair<int64_t, int64_t>> lines;
    for (const auto& sample : profile.samples) {
      const auto& stack = profile.stacks[static_cast<size_t>(sample.stack)];
      auto& line = lines[{model::FrameName(profile, stack.front()), stack.size(),
                          profile.threads[static_cast<size_t>(sample.thread)].tid, sample.device,
                          sample.stream.value_or(-1), sample.graph, sample.launch_group >= 0}];
      line.first += sample.count;
      line.second += sample.weight_ns;
    }
    return lines;
  }
  static double Uncertainty(const model::Profile& profile) {
    double sum = 0;
    for (const auto& sample : profile.samples)
      if (sample.launch_group >= 0)
        sum += model::ShareVariance(profile.launch_groups[static_cast<size_t>(sample.launch_group)].total_ns,
                                    sample.launches,
                                    profile.launch_groups[static_cast<size_t>(sample.launch_group)].launches);
    return sum;
  }

  // From now on, the files of days are read as recordings.
  void CloseAndOpenFiles() {
    live_.reset();
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "live"))
      if (entry.path().extension() == ".sonde") files.push_back(entry.path());
    auto recordings = OpenRecordings(files);
    ASSERT_TRUE(recordings.has_value()) << recordings.error().message;
    auto summed = UseRecordedSums(*std::move(recordings), files.size());
    ASSERT_TRUE(summed.has_value()) << summed.error().message;
    recorded_ = *std::move(summed);
  }
  Store& Summed() { return recorded_ != nullptr ? *recorded_ : *live_; }

  void ExpectAlike(const model::Selection& selection) {
    SCOPED_TRACE(fmt::format("{} to {}", selection.from_ns, selection.to_ns));
    const auto live_profile = ReadGpuProfile(Summed(), selection);
    const auto plain_profile = ReadGpuProfile(*plain_, selection);
    ASSERT_TRUE(live_profile.has_value()) << live_profile.error().message;
    ASSERT_TRUE(plain_profile.has_value()) << plain_profile.error().message;
    EXPECT_EQ(Lines(*live_profile), Lines(*plain_profile));
    const double uncertainty = Uncertainty(*plain_profile);
    EXPECT_NEAR(Uncertainty(*live_profile), uncertainty, 1e-6 * uncertainty);
    const auto live = ReadDeviceUse(Summed(), selection).value();
    const auto plain = ReadDeviceUse(*plain_, selection).value();
    ASSERT_EQ(live.size(), plain.size());
    for (size_t i = 0; i < live.size(); ++i) {
      EXPECT_EQ(live[i].kernels, plain[i].kernels);
      EXPECT_EQ(live[i].busy_ns, plain[i].busy_ns);
      EXPECT_EQ(live[i].observed_ns, plain[i].observed_ns);
      EXPECT_EQ(live[i].streams.size(), plain[i].streams.size());
    }
    const auto live_strips = ReadGpuStrips(Summed(), selection, 7).value();
    const auto plain_strips = ReadGpuStrips(*plain_, selection, 7).value();
    ASSERT_EQ(live_strips.size(), plain_strips.size());
    // A window across the border of two buckets spreads over both: at most its length is amiss at either end.
    for (size_t i = 0; i < live_strips.size(); ++i)
      for (size_t bucket = 0; bucket < 7; ++bucket) {
        const Strip& strip = plain_strips[i].strip;
        const double bucket_ns = static_cast<double>(strip.to_ns - strip.from_ns) / 7;
        EXPECT_NEAR(live_strips[i].strip.values[bucket].value_or(-1), strip.values[bucket].value_or(-1),
                    2 * static_cast<double>(kMinute) / bucket_ns);
      }
  }

  bool packed_ = true;
  TempFolder folder_;
  std::unique_ptr<LiveStore> live_;
  std::unique_ptr<Store> recorded_;
  std::unique_ptr<Store> plain_;
  int64_t sequence_ = 1;
  uint64_t launches_ = 0;
  int64_t clock_ns_ = EpochNow();
};

using GpuWindows = GpuWindowsTest;

// Each kernel in a row of its own, or in packs.
class GpuWindowsOf : public GpuWindowsTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Kernels, GpuWindowsOf, testing::Bool(),
                         [](const auto& packed) { return packed.param ? "Packed" : "InRows"; });

TEST_P(GpuWindowsOf, SayTheSameAsTheRowsWhateverComesLate) {
  packed_ = GetParam();
  std::mt19937_64 random(20261121);
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  CommitNames(kMidnightNs);
  CommitNames(kMidnightNs + 24 * kHourNs);
  int64_t now_ns = kMidnightNs + 22 * kHourNs;
  for (int round = 0; round < 60; ++round) {
    now_ns += below(6 * kMinute);
    if (below(20) == 0) now_ns += 2 * kHourNs;
    if (below(20) == 0) Reopen();
    std::vector<int64_t> starts;
    for (int64_t i = below(20); i > 0; --i)
      starts.push_back(now_ns - below(below(6) == 0 ? 8 * kMinute : kSecond));
    CommitLaunches(now_ns, starts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(Number("SELECT count(*) FROM kernel_windows WHERE end_ns - start_ns = 60000000000"), 100);
  EXPECT_GT(Number("SELECT count(*) FROM kernel_windows WHERE end_ns - start_ns = 3600000000000"), 10);
  EXPECT_GT(Number("SELECT count(*) FROM device_windows"), 100);
  ExpectAlike({});
  for (int i = 0; i < 10; ++i) {
    const int64_t from_ns = kMidnightNs + 21 * kHourNs + below(8 * kHourNs);
    ExpectAlike({.from_ns = from_ns, .to_ns = from_ns + below(6 * kHourNs)});
  }
  ExpectAlike({.processes = {{5, 1}}});
  ExpectAlike({.device = Id128{6, 0}, .stream = 1});
  ExpectAlike({.processes = {{5, 2}}, .tid = 0});

  CloseAndOpenFiles();
  ASSERT_NE(recorded_, nullptr);
  EXPECT_GT(recorded_->gpu_windows().to_ns - recorded_->gpu_windows().from_ns, 3 * kHourNs);
  ExpectAlike({});
  for (int i = 0; i < 10; ++i) {
    const int64_t from_ns = kMidnightNs + 21 * kHourNs + below(8 * kHourNs);
    ExpectAlike({.from_ns = from_ns, .to_ns = from_ns + below(6 * kHourNs)});
  }
}

// A machine whose hardware clock is ahead, until a time server is reached.
TEST_P(GpuWindowsOf, SayTheSameAsTheRowsAfterTheClockWasSteppedBack) {
  packed_ = GetParam();
  const auto run = [&](int64_t from_ns, int64_t to_ns) {
    for (clock_ns_ = from_ns; clock_ns_ < to_ns; clock_ns_ += 7 * kMinute) {
      CommitLaunches(clock_ns_, {clock_ns_ - 3 * kMinute, clock_ns_ - 2 * kSecond, clock_ns_ - kSecond});
      if (HasFatalFailure()) return;
    }
  };
  const int64_t begin_ns = kMidnightNs + 20 * kHourNs;
  CommitNames(kMidnightNs);
  CommitNames(kMidnightNs + 24 * kHourNs);
  run(begin_ns + 3 * kHourNs, begin_ns + 6 * kHourNs);
  run(begin_ns, begin_ns + 2 * kHourNs);
  EXPECT_GT(live_->gpu_windows().to_ns, begin_ns + 110 * kMinute);
  EXPECT_LE(live_->gpu_windows().to_ns, clock_ns_);
  const auto expect_alike = [&] {
    ExpectAlike({});
    ExpectAlike({.from_ns = begin_ns, .to_ns = begin_ns + kHourNs});
    ExpectAlike({.from_ns = begin_ns + 2 * kMinute, .to_ns = begin_ns + 5 * kHourNs});
  };
  expect_alike();
  Reopen();
  expect_alike();
  // The time of the wrong clock comes, too.
  run(clock_ns_, begin_ns + 7 * kHourNs);
  EXPECT_GT(live_->gpu_windows().to_ns, begin_ns + 6 * kHourNs);
  expect_alike();
  CloseAndOpenFiles();
  ASSERT_NE(recorded_, nullptr);
  expect_alike();
}

TEST_F(GpuWindows, OfAFileThatWasClosedWithinAnHourAreUsedUntilThen) {
  const int64_t next_day_ns = kMidnightNs + 24 * kHourNs;
  CommitNames(kMidnightNs);
  CommitLaunches(kMidnightNs, {next_day_ns - 90 * kMinute});
  CommitLaunches(kMidnightNs, {next_day_ns - 10 * kMinute});
  CommitLaunches(kMidnightNs, {next_day_ns - 8 * kMinute});  // sums end before the hour does
  CloseAndOpenFiles();
  ASSERT_NE(recorded_, nullptr);
  EXPECT_EQ(recorded_->gpu_windows().to_ns, next_day_ns - 9 * kMinute);
  ExpectAlike({});
  ExpectAlike({.from_ns = next_day_ns - kHourNs, .to_ns = next_day_ns});
}

TEST_F(GpuWindows, AreNotUsedOfFilesOfWhichOneHasNone) {
  CommitNames(kMidnightNs);
  CommitLaunches(kMidnightNs, {kMidnightNs, kMidnightNs + 5 * kMinute});
  CloseAndOpenFiles();
  const std::string other = folder_ / "other.sonde";
  {
    auto made = CreateRecording(other).value();
    std::vector<model::Kernel> kernels;
    std::vector<model::ApiCall> calls;
    Launch(kMidnightNs + kMinute, kernels, calls);
    ASSERT_TRUE(made->Append(std::vector{RowsOf(model::kKernels, kernels)}).has_value());
  }
  auto both = OpenRecordings({folder_ / "live/2024-10-04.sonde", other});
  ASSERT_TRUE(both.has_value()) << both.error().message;
  const auto summed = UseRecordedSums(*std::move(both), 2).value();
  EXPECT_GE(summed->gpu_windows().from_ns, summed->gpu_windows().to_ns);
}

// As one that an older gpusonde wrote.
TEST_F(GpuWindows, AreNotUsedOfAFileWithoutTheirTables) {
  const std::string path = folder_ / "older.sonde";
  ASSERT_TRUE(CreateRecording(path).has_value());
  {
    auto connection = duckdb::Connection::Open(duckdb::Instance::Create({}).value()).value();
    ASSERT_TRUE(connection.Run(fmt::format("ATTACH {} AS file", duckdb::QuoteText(path))).has_value());
    for (const std::string table : {"kernel_packs", "kernel_windows", "profile_windows"})
      ASSERT_TRUE(connection.Run("DROP TABLE file.main." + table).has_value());
  }
  const auto summed = UseRecordedSums(OpenRecordings({path}).value(), 1);
  ASSERT_TRUE(summed.has_value()) << summed.error().message;
  EXPECT_GE((*summed)->gpu_windows().from_ns, (*summed)->gpu_windows().to_ns);
  EXPECT_GE((*summed)->sample_windows().from_ns, (*summed)->sample_windows().to_ns);
}

// Of every window of an hour or minute, the sketch is that of the durations that its count counts.
TEST_P(GpuWindowsOf, HaveSketchesOfTheirDurations) {
  packed_ = GetParam();
  CommitNames(kMidnightNs);
  CommitLaunches(kMidnightNs, {kMidnightNs});  // sums begin here
  std::mt19937_64 random(7);
  std::vector<model::Kernel> kernels;
  std::map<std::string, Sketch> expected;
  for (int i = 0; i < 3000; ++i) {
    const auto duration_ns = static_cast<int64_t>((random() >> 20) >> random() % 44);
    const int64_t start_ns = kMidnightNs + static_cast<int64_t>(random() % kHourNs);
    kernels.push_back({.process = {5, 1},
                       .device = {6, 0},
                       .session = 1,
                       .correlation = i,
                       .start_ns = start_ns,
                       .end_ns = start_ns + duration_ns,
                       .name = "timed" + std::to_string(i % 3)});
    if (i % 3 == 2) kernels.back().graph_node = 3;
    expected[kernels.back().name].Add(duration_ns);
  }
  for (int64_t power = 0; power < 45; ++power)
    for (const int64_t duration_ns : {(int64_t{1} << power) - 1, int64_t{1} << power}) {
      model::Kernel kernel = kernels.front();
      kernel.end_ns = kernel.start_ns + duration_ns;
      expected[kernel.name].Add(duration_ns);
      kernels.push_back(std::move(kernel));
    }
  const std::vector<model::Batch> rows = {RowsOf(model::kKernels, kernels)};
  Commit(kMidnightNs, packed_ ? std::vector{RowsOf(model::kKernelPacks, Packed(kernels))} : rows, rows);
  CommitLaunches(kMidnightNs, {kMidnightNs + kHourNs + 2 * kMinute});
  for (const int64_t length_ns : {kMinute, kHourNs}) {
    auto windows = live_
                       ->Query("SELECT name, sketch, count FROM kernel_windows WHERE end_ns - start_ns = ?",
                               {{length_ns}})
                       .value();
    std::map<std::string, Sketch> summed;
    while (windows->Next().value()) {
      const std::vector<int64_t> pairs = windows->Int64List(1);
      Sketch sketch;
      for (size_t i = 0; i + 1 < pairs.size(); i += 2)
        sketch.AddTo(static_cast<uint32_t>(pairs[i]), static_cast<uint64_t>(pairs[i + 1]));
      EXPECT_EQ(sketch.count(), static_cast<uint64_t>(windows->Int64(2)));
      if (const auto known = expected.find(std::string(windows->Text(0))); known != expected.end())
        summed[known->first].Merge(sketch);
    }
    EXPECT_EQ(summed, expected) << length_ns;
  }
}

TEST_F(GpuWindows, AreThereOnceTheirMinuteIsOver) {
  CommitNames(kMidnightNs);
  CommitLaunches(kMidnightNs, {kMidnightNs + kSecond, kMidnightNs + 20 * kSecond});
  EXPECT_EQ(Number("SELECT count(*) FROM kernel_windows"), 0);
  CommitLaunches(kMidnightNs, {kMidnightNs + kMinute + 9 * kSecond});
  EXPECT_EQ(Number("SELECT count(*) FROM kernel_windows"), 0) << "what is slow may still come";
  CommitLaunches(kMidnightNs, {kMidnightNs + kMinute + 11 * kSecond});
  EXPECT_EQ(live_->gpu_windows().to_ns, kMidnightNs + kMinute);
  EXPECT_EQ(Number("SELECT sum(count)::BIGINT FROM kernel_windows"), 2);
  ExpectAlike({});
}

TEST_F(GpuWindows, IncludeTheLastHourOfADayThatEndedWithoutWork) {
  const int64_t next_day_ns = kMidnightNs + 24 * kHourNs;
  CommitNames(kMidnightNs);
  CommitNames(next_day_ns);
  CommitLaunches(kMidnightNs, {next_day_ns - 90 * kMinute});  // sums begin before the hour
  CommitLaunches(kMidnightNs, {next_day_ns - 90 * kSecond});
  CommitLaunches(next_day_ns, {next_day_ns + 5 * kSecond});  // sums end at 23:59
  CommitLaunches(next_day_ns, {next_day_ns + 15 * kSecond});
  EXPECT_EQ(live_->gpu_windows().to_ns, next_day_ns);
  ExpectAlike({.from_ns = next_day_ns - kHourNs, .to_ns = next_day_ns});
}

TEST_F(GpuWindows, UntrustedTimesAreNotFollowed) {
  CommitNames(kMidnightNs);
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  CommitLaunches(kMidnightNs, {kMidnightNs, kMidnightNs + 2 * kMinute});
  // Neither into the future nor into the past: work of now is still summed, in a minute and not for all of
  // time.
  CommitLaunches(kMidnightNs, {5, kLast - 100 * kSecond});
  model::Kernel endless{
      .process = {5, 1}, .device = {6, 0}, .session = 1, .start_ns = 5, .end_ns = kLast, .name = "k"};
  Commit(kMidnightNs, {RowsOf(model::kKernels, {endless})});
  CommitLaunches(EpochNow(), {EpochNow() - 3 * kMinute, EpochNow() - kSecond});
  EXPECT_LE(live_->gpu_windows().to_ns, EpochNow());
  EXPECT_GT(live_->gpu_windows().to_ns, EpochNow() - 3 * kMinute);
  EXPECT_LT(Number("SELECT count(*) FROM device_windows"), 20'000);
}

// A kernel whose name takes so much memory. One value can't be read in parts.
std::vector<model::KernelPack> LongName(int64_t second_ns, size_t bytes) {
  return {{.process = {5, 1},
           .device = {6, 0},
           .session = 1,
           .name = std::string(bytes, 'k'),
           .start_ns = second_ns,
           .end_ns = second_ns + kSecond,
           .count = 1,
           .duration_ns = 1,
           .offsets_ns = {0},
           .durations_ns = {1},
           .correlations = {1},
           .graph_nodes = {}}};
}

TEST_F(GpuWindows, PacksThatCountFalselyAreSummedToo) {
  std::vector<model::KernelPack> packs;
  for (const int64_t second_ns : {kMidnightNs, kMidnightNs + kSecond, kMidnightNs + 2 * kMinute}) {
    packs.push_back(LongName(second_ns, 1).front());
    packs.back().count = std::numeric_limits<int64_t>::max();
  }
  Commit(kMidnightNs, {RowsOf(model::kKernelPacks, packs)});
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(live_->gpu_windows().to_ns, kMidnightNs + kMinute);
  EXPECT_EQ(Number("SELECT sum(count)::BIGINT FROM kernel_windows"), 2) << "as many as they have times";
  const auto overview = ReadOverview(*live_);
  ASSERT_TRUE(overview.has_value()) << overview.error().message;
  EXPECT_EQ(overview->kernels, std::numeric_limits<int64_t>::max());
}

// The memory limit of stores that are opened while it lives.
class MemoryLimited {
 public:
  explicit MemoryLimited(int64_t bytes) { SetMemoryLimit(bytes); }
  ~MemoryLimited() { SetMemoryLimit(0); }
  MemoryLimited(const MemoryLimited&) = delete;
  MemoryLimited& operator=(const MemoryLimited&) = delete;
};

// Else `up` would never start again after a minute whose sums need more memory than there is.
TEST_F(GpuWindows, AreMissingWhereTheyDontFitIntoMemoryAndTheRestStillOpens) {
  CommitNames(kMidnightNs);
  Commit(kMidnightNs, {RowsOf(model::kKernelPacks, LongName(kMidnightNs, size_t{32} << 20))}, {});
  live_.reset();
  {
    const MemoryLimited limited(int64_t{24} << 20);
    Reopen();
    ASSERT_NE(live_, nullptr);
    CommitLaunches(kMidnightNs, {kMidnightNs + 2 * kMinute});
    EXPECT_LT(live_->gpu_windows().to_ns, kMidnightNs + kMinute);
    Reopen();
    ASSERT_NE(live_, nullptr);
    EXPECT_LT(live_->gpu_windows().to_ns, kMidnightNs + kMinute);
    EXPECT_EQ(Number("SELECT count(*) FROM kernel_packs"), 2);
  }
  Reopen();
  EXPECT_GE(live_->gpu_windows().to_ns, kMidnightNs + kMinute);
}

TEST_F(GpuWindows, GoWithTheirDay) {
  CommitNames(kMidnightNs);
  CommitLaunches(kMidnightNs, {kMidnightNs, kMidnightNs + 5 * kMinute});
  CommitNames(kMidnightNs + 24 * kHourNs);
  CommitLaunches(kMidnightNs + 24 * kHourNs,
                 {kMidnightNs + 24 * kHourNs, kMidnightNs + 24 * kHourNs + 5 * kMinute});
  ASSERT_EQ(live_->Retain(1, kMinute).value(), 1);
  EXPECT_EQ(Number(fmt::format("SELECT count(*) FROM kernel_windows WHERE start_ns < {}",
                               kMidnightNs + 24 * kHourNs)),
            0);
  EXPECT_EQ(Number(fmt::format("SELECT count(*) FROM device_windows WHERE start_ns < {}",
                               kMidnightNs + 24 * kHourNs)),
            0);
  EXPECT_GT(Number("SELECT count(*) FROM kernel_windows"), 0);
}

TEST_F(GpuWindows, BusyTimesAreMergedAndCut) {
  CommitNames(kMidnightNs);
  auto rows = plain_->Query(
      "SELECT '00000000-0000-0006-0000-000000000000'::UUID, * FROM (VALUES (10::BIGINT, 20::BIGINT), (5, "
      "12), (20, 25), "
      "(40, 45), (99, 98), (-5, 2))");
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  const auto times = ReadBusyTimes(**rows, {1, 44});
  ASSERT_TRUE(times.has_value());
  ASSERT_THAT(*times, SizeIs(1));
  std::vector<std::pair<int64_t, int64_t>> pieces;
  for (const TimeRange& time : times->begin()->second) pieces.emplace_back(time.from_ns, time.to_ns);
  EXPECT_THAT(pieces, ElementsAre(std::pair(1, 2), std::pair(5, 25), std::pair(40, 44)));
}

// Process 1 has device 0 for the first hours, process 2 for the last, both between; process 2 has device 1.
TEST_F(GpuWindows, UsageOfDevicesIsThatOfRows) {
  CommitNames(kMidnightNs);
  std::vector<model::Kernel> kernels;
  for (int64_t minute = 0; minute < 360; ++minute) {
    for (int64_t i = 0; i < 12; ++i) {
      const int64_t start_ns = kMidnightNs + minute * kMinute + i * 5 * kSecond;
      const bool both = minute >= 120 && minute < 180;
      for (const auto& [process, device] :
           {std::pair{Id128{5, 1}, Id128{6, 0}}, {{5, 2}, {6, 0}}, {{5, 2}, {6, 1}}})
        if (device == Id128{6, 1} || both || (process == Id128{5, 1}) == (minute < 120))
          kernels.push_back(
              {.process = process,
               .device = device,
               .session = 1,
               .correlation = static_cast<int64_t>(++launches_),
               .stream = 7,
               .start_ns = start_ns + static_cast<int64_t>(launches_ * 7919 % 20) * kSecond / 10,
               .end_ns = start_ns + 3 * kSecond,
               .name = "k"});
    }
    if (minute % 20 != 19) continue;
    Commit(kMidnightNs, {RowsOf(model::kKernelPacks, Packed(kernels))}, {RowsOf(model::kKernels, kernels)});
    kernels.clear();
  }
  ASSERT_GT(live_->gpu_windows().to_ns - live_->gpu_windows().from_ns, 5 * kHourNs);
  const model::Selection selection{
      .from_ns = kMidnightNs + 30 * kSecond, .to_ns = kMidnightNs + 6 * kHourNs, .filter = {}};
  const GpuUsage live = ReadGpuUsage(*live_, selection).value();
  const GpuUsage plain = ReadGpuUsage(*plain_, selection).value();
  ASSERT_THAT(live.holders, SizeIs(3));
  ASSERT_THAT(plain.holders, SizeIs(3));
  for (size_t i = 0; i < live.holders.size(); ++i) {
    EXPECT_EQ(live.holders[i].process, plain.holders[i].process);
    EXPECT_EQ(live.holders[i].device, plain.holders[i].device);
    EXPECT_NEAR(live.holders[i].use.busy_ns, plain.holders[i].use.busy_ns, 1e3);
    // Roll-ups know to the minute when a process came.
    EXPECT_NEAR(live.holders[i].use.idle_ns, plain.holders[i].use.idle_ns, 61e9);
  }
}

}  // namespace
}  // namespace gpusonde::store
