// SPDX-License-Identifier: Apache-2.0
#include "store/queries/profile_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "base/time.h"
#include "model/tables/batches.h"
#include "model/tables/binaries.h"
#include "model/tables/devices.h"
#include "model/tables/drops.h"
#include "model/tables/functions.h"
#include "model/tables/locations.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/signals.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/threads.h"
#include "store/recordings/recording.h"

namespace gpusonde::store {
namespace {

using model::BatchBuilder;
using model::Selection;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr Id128 kLibrary{1, 1};
constexpr Id128 kMain{2, 1}, kWork{2, 2}, kInlined{2, 3};
constexpr Id128 kInMain{3, 1}, kInWork{3, 2}, kStripped{3, 3}, kNowhere{3, 4};
constexpr Id128 kMainStack{4, 1}, kWorkStack{4, 2}, kStrippedStack{4, 3};
constexpr Id128 kSampled{5, 1}, kLoader{5, 2};

template <class Table>
model::Batch Rows(const Table& table, std::initializer_list<typename Table::Row> rows) {
  BatchBuilder builder(table);
  for (const auto& row : rows) builder.Append(row);
  return builder.Take();
}

// Two processes: the trainer with two threads, the loader with one; times are seconds after 0.
class ProfileQuery : public testing::Test {
 protected:
  void SetUp() override {
    auto store = CreateInMemory();
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = std::move(store).value();
    const auto at = [](int seconds) { return int64_t{seconds} * 1'000'000'000; };
    const auto sample = [&](int seconds, Id128 process, int32_t tid, Id128 stack, int64_t weight_ns) {
      return model::Sample{
          .time_ns = at(seconds), .process = process, .tid = tid, .stack = stack, .weight_ns = weight_ns};
    };
    Add(Rows(model::kSources, {{.source = {9, 9},
                                .kind = model::SourceKind::kRecord,
                                .host = "here",
                                .cpus = 2,
                                .sampling_hz = 99,
                                .command = "train",
                                .started_ns = at(0),
                                .ended_ns = at(10)}}));
    Add(Rows(model::kProcesses,
             {{.process = kSampled, .pid = 100, .name = "python3", .command = "python3 train.py"},
              {.process = kLoader, .pid = 200, .name = "loader", .exited_ns = at(9)}}));
    Add(Rows(model::kThreads,
             {{kSampled, 100, "main"}, {kSampled, 101, "worker"}, {kLoader, 200, "loader"}}));
    Add(Rows(model::kBinaries, {{kLibrary, "ab12", "/usr/lib/libwork.so", "libwork.so"}}));
    Add(Rows(model::kFunctions, {{kMain, "main()", "main", "main.cc", 10},
                                 {kWork, "Work(int)", "_Z4Worki", std::nullopt, std::nullopt},
                                 {kInlined, "Inner", "Inner", "work.h", 5}}));
    Add(Rows(model::kLocations,
             {{kInMain, model::FrameKind::kNative, kLibrary, 0x10, {kMain}, {12}},
              {kInWork, model::FrameKind::kNative, kLibrary, 0x20, {kInlined, kWork}, {6, 44}},
              {kStripped, model::FrameKind::kNative, kLibrary, 0x1f, {}, {}},
              {kNowhere, model::FrameKind::kUnknown, std::nullopt, std::nullopt, {}, {}}}));
    Add(Rows(model::kStacks, {{kMainStack, {kInMain}},
                              {kWorkStack, {kInWork, kInMain}},
                              {kStrippedStack, {kNowhere, kStripped, kInMain}}}));
    Add(Rows(model::kSamples,
             {sample(1, kSampled, 100, kWorkStack, 100), sample(2, kSampled, 100, kWorkStack, 100),
              sample(3, kSampled, 101, kWorkStack, 100), sample(4, kSampled, 101, kMainStack, 50),
              sample(5, kLoader, 200, kStrippedStack, 1000),
              model::Sample{.time_ns = at(5),
                            .process = kLoader,
                            .tid = 200,
                            .stack = kMainStack,
                            .state = model::ThreadState::kSleep,
                            .weight_ns = 77}}));
  }

  void Add(const model::Batch& batch) {
    const Status added = store_->Append({{batch}});
    ASSERT_TRUE(added.has_value()) << added.error().message;
  }

  model::Profile Read(const Selection& selection) {
    auto profile = ReadProfile(*store_, selection);
    EXPECT_TRUE(profile.has_value()) << profile.error().message;
    return std::move(profile).value_or(model::Profile{});
  }

  // "thread: root;…;leaf" → (samples, ns); inlined frames are frames of their own.
  static std::map<std::string, std::pair<int64_t, int64_t>> Folded(const model::Profile& profile) {
    std::map<std::string, std::pair<int64_t, int64_t>> folded;
    for (const auto& sample : profile.samples) {
      std::string line = profile.threads.at(sample.thread).name + ":";
      const auto& stack = profile.stacks.at(sample.stack);
      for (auto at = stack.rbegin(); at != stack.rend(); ++at)
        for (size_t i = std::max<size_t>(profile.locations.at(*at).lines.size(), 1); i-- > 0;)
          line += " " + model::FrameName(profile, *at, i);
      folded[line] = {sample.count, sample.weight_ns};
    }
    return folded;
  }

  std::unique_ptr<Store> store_;
};

TEST_F(ProfileQuery, WaitingTimeStandsUnderWhatIsWaitedFor) {
  Add(Rows(model::kSamples, {model::Sample{.time_ns = 6'000'000'000,
                                           .process = kLoader,
                                           .tid = 200,
                                           .stack = kMainStack,
                                           .state = model::ThreadState::kLock,
                                           .weight_ns = 5}}));
  Selection waiting;
  waiting.off_cpu = true;
  const model::Profile profile = Read(waiting);
  EXPECT_EQ(profile.type, model::ProfileType::kOffCpu);
  EXPECT_THAT(Folded(profile), UnorderedElementsAre(Pair("loader: main() [sleeps]", Pair(1, 77)),
                                                    Pair("loader: main() [waits for a lock]", Pair(1, 5))));
  waiting.wait = model::ThreadState::kLock;
  EXPECT_THAT(Folded(Read(waiting)),
              UnorderedElementsAre(Pair("loader: main() [waits for a lock]", Pair(1, 5))));
}

TEST_F(ProfileQuery, SampledWaitsHaveAVariance) {
  const auto wait = [](int64_t weight_ns, std::optional<int64_t> duration_ns) {
    return model::Sample{.time_ns = 6'000'000'000,
                         .process = kLoader,
                         .tid = 200,
                         .stack = kMainStack,
                         .state = model::ThreadState::kLock,
                         .weight_ns = weight_ns,
                         .duration_ns = duration_ns};
  };
  // Sampled with probability 1/4, twice; counted for certain; of an older file.
  Add(Rows(model::kSamples, {wait(40, 10), wait(80, 20), wait(600, 600), wait(7, std::nullopt)}));
  const model::Profile profile = Read({.off_cpu = true, .wait = model::ThreadState::kLock});
  ASSERT_EQ(profile.samples.size(), 1);
  EXPECT_EQ(profile.samples[0].weight_ns, 727);
  EXPECT_DOUBLE_EQ(profile.samples[0].variance_ns2, 12 * (10 * 10 + 20 * 20)) << "(1 - p) / p² = 12";
}

TEST_F(ProfileQuery, SumsSamplesByThreadAndStackWithEveryName) {
  const model::Profile profile = Read({});
  EXPECT_THAT(Folded(profile),
              UnorderedElementsAre(Pair("main: main() Work(int) Inner", Pair(2, 200)),
                                   Pair("worker: main() Work(int) Inner", Pair(1, 100)),
                                   Pair("worker: main()", Pair(1, 50)),
                                   Pair("loader: main() [libwork.so+0x1f] [unknown]", Pair(1, 1000))));
  EXPECT_EQ(profile.sampling_hz, 99);
  EXPECT_EQ(profile.start_ns, 0);
  EXPECT_EQ(profile.end_ns, 10'000'000'000);
  ASSERT_EQ(profile.binaries.size(), 1u);
  EXPECT_EQ(profile.binaries[0].build_id, "ab12");
  const auto work = std::ranges::find(profile.functions, "Work(int)", &model::Profile::Function::name);
  ASSERT_NE(work, profile.functions.end());
  EXPECT_EQ(work->system_name, "_Z4Worki");
  EXPECT_EQ(work->file, "");
  EXPECT_EQ(work->line, 0);
}

TEST_F(ProfileQuery, KnowsTheFilesOfFunctions) {
  EXPECT_TRUE(NamesFile(*store_, "main.cc").value());
  EXPECT_FALSE(NamesFile(*store_, "main").value());
  EXPECT_FALSE(NamesFile(*store_, "").value());
}

TEST_F(ProfileQuery, SelectsByTimeProcessAndThread) {
  EXPECT_THAT(Folded(Read({.from_ns = 2'000'000'000, .to_ns = 4'000'000'000})),
              UnorderedElementsAre(Pair("main: main() Work(int) Inner", Pair(1, 100)),
                                   Pair("worker: main() Work(int) Inner", Pair(1, 100))));
  EXPECT_EQ(Read({.processes = {kSampled}}).threads.size(), 2u);
  EXPECT_EQ(Read({.processes = {kSampled}, .tid = 101}).samples.size(), 2u);
  EXPECT_EQ(Read({.processes = {kSampled, {7, 7}}}).threads.size(), 2u);
  const model::Profile nothing = Read({.processes = {{7, 7}}});
  EXPECT_TRUE(nothing.samples.empty());
  EXPECT_TRUE(nothing.locations.empty()) << "only what samples use is read";
}

TEST_F(ProfileQuery, FiltersByDisplayedNames) {
  const auto threads = [&](const std::string& filter) {
    std::vector<std::string> lines;
    for (const auto& [line, values] : Folded(Read({.filter = filter}))) lines.push_back(line);
    return lines;
  };
  EXPECT_EQ(threads("main").size(), 4u);
  EXPECT_EQ(threads("wORk(").size(), 2u) << "case doesn't matter, inlined into or not";
  EXPECT_EQ(threads("INNER").size(), 2u);
  EXPECT_THAT(threads("work.so+0x1F]"), ElementsAre("loader: main() [libwork.so+0x1f] [unknown]"));
  EXPECT_THAT(threads("[unknown]"), ElementsAre("loader: main() [libwork.so+0x1f] [unknown]"));
  EXPECT_TRUE(threads("_Z4Worki").empty()) << "nobody is shown that";
  EXPECT_TRUE(threads("100%'; --").empty());
}

TEST_F(ProfileQuery, RowsThatAreMissingLeaveWhatIsThere) {
  Add(Rows(model::kStacks, {{{4, 9}, {kInMain, {3, 99}}}}));
  Add(Rows(model::kSamples,
           {{.time_ns = 1, .process = {5, 99}, .tid = 1, .stack = {4, 9}, .weight_ns = 3},
            {.time_ns = 1, .process = {5, 99}, .tid = 2, .stack = {4, 99}, .weight_ns = 4}}));
  const model::Profile profile = Read({.processes = {{5, 99}}});
  ASSERT_EQ(profile.samples.size(), 2u);
  EXPECT_THAT(profile.stacks.at(0), ElementsAre(0, -1));
  EXPECT_THAT(profile.stacks.at(static_cast<size_t>(profile.samples[1].stack)), ElementsAre(-1));
  EXPECT_EQ(profile.threads[0].process_name, "");
}

TEST_F(ProfileQuery, LaterSymbolsReplaceEarlierNames) {
  const auto names = [&] {
    std::string all;
    for (const auto& [stack, time] : Folded(Read({}))) all += stack + "\n";
    return all;
  };
  ASSERT_EQ(names().find("Found"), std::string::npos);
  constexpr Id128 kFound{2, 4};
  Add(Rows(model::kFunctions, {{kFound, "Found", "Found", std::nullopt, std::nullopt}}));
  Add(Rows(model::kLocations, {{kStripped, model::FrameKind::kNative, kLibrary, 0x1f, {kFound}, {0}}}));
  EXPECT_NE(names().find("Found"), std::string::npos) << names();
}

TEST_F(ProfileQuery, ProcessesFallByCpuTimeAndSoDoTheirThreads) {
  auto processes = ReadProcesses(*store_, {});
  ASSERT_TRUE(processes.has_value()) << processes.error().message;
  ASSERT_EQ(processes->size(), 2u);
  EXPECT_EQ((*processes)[0].name, "loader");
  EXPECT_EQ((*processes)[0].cpu_ns, 1000);
  EXPECT_THAT((*processes)[0].exited_ns, Optional(9'000'000'000));
  EXPECT_EQ((*processes)[1].command, "python3 train.py");
  EXPECT_EQ((*processes)[1].cpu_ns, 350);
  EXPECT_EQ((*processes)[1].exited_ns, std::nullopt);
  ASSERT_EQ((*processes)[1].threads.size(), 2u);
  EXPECT_EQ((*processes)[1].threads[0].name, "main");
  EXPECT_EQ((*processes)[1].threads[1].cpu_ns, 150);
}

TEST_F(ProfileQuery, TheStripIsTheMeanOfBusyCpus) {
  const auto strip = ReadCpuStrip(*store_, {}, 10);
  ASSERT_TRUE(strip.has_value()) << strip.error().message;
  EXPECT_EQ(strip->from_ns, 0);
  EXPECT_EQ(strip->to_ns, 10'000'000'000);
  EXPECT_THAT(strip->values,
              ElementsAre(Optional(0.0), Optional(1e-7), Optional(1e-7), Optional(1e-7), Optional(5e-8),
                          Optional(1e-6), Optional(0.0), Optional(0.0), Optional(0.0), Optional(0.0)));
}

TEST_F(ProfileQuery, TheStripShowsNoMoreCoresThanThereAreAndNoFinerThanSamples) {
  Add(Rows(model::kSources, {{.source = {9, 11},
                              .host = "here",
                              .cpus = 2,
                              .sampling_hz = 20,
                              .started_ns = 20'000'000'000,
                              .ended_ns = 21'000'000'000}}));
  // Both CPUs are busy all the time: a sample of each every 50 ms.
  for (int64_t time_ns = 20'000'000'000; time_ns < 21'000'000'000; time_ns += 50'000'000)
    for (const int32_t tid : {100, 101})
      Add(Rows(model::kSamples, {{.time_ns = time_ns,
                                  .process = kSampled,
                                  .tid = tid,
                                  .stack = kMainStack,
                                  .weight_ns = 50'000'000}}));
  for (const int buckets : {3, 7, 600}) {
    const auto strip = ReadCpuStrip(*store_, {.from_ns = 20'000'000'000, .to_ns = 21'000'000'000}, buckets);
    ASSERT_TRUE(strip.has_value()) << strip.error().message;
    ASSERT_EQ(strip->values.size(), static_cast<size_t>(buckets));
    for (const auto& value : strip->values) {
      ASSERT_TRUE(value.has_value());
      EXPECT_LE(*value, 2) << buckets;
      EXPECT_GE(*value, 1.5) << buckets;
    }
  }
}

TEST_F(ProfileQuery, TheNewestBucketOfALiveStripIsTheMeanOverItsSamplesTime) {
  constexpr int64_t kBegin = 20'000'000'000;
  Add(Rows(model::kSources,
           {{.source = {9, 11}, .host = "here", .cpus = 2, .sampling_hz = 20, .started_ns = kBegin}}));
  // Both CPUs are busy; the samples of the last 0.4 s before the commit are yet to come.
  for (int64_t time_ns = kBegin; time_ns <= kBegin + 9'600'000'000; time_ns += 50'000'000)
    for (const int32_t tid : {100, 101})
      Add(Rows(model::kSamples, {{.time_ns = time_ns,
                                  .process = kSampled,
                                  .tid = tid,
                                  .stack = kMainStack,
                                  .weight_ns = 50'000'000}}));
  const int64_t end_ns = kBegin + 10 * kNanosPerSecond;
  Add(Rows(model::kBatches, {{.spool = {8, 8}, .sequence = 1, .rows = 1, .committed_ns = end_ns}}));
  const auto coarse = ReadCpuStrip(*store_, {.from_ns = kBegin, .to_ns = end_ns}, 5);
  ASSERT_TRUE(coarse.has_value()) << coarse.error().message;
  for (const auto& value : coarse->values) EXPECT_THAT(value, Optional(DoubleNear(2, 0.05)));
  const auto fine = ReadCpuStrip(*store_, {.from_ns = kBegin, .to_ns = end_ns}, 100);
  ASSERT_TRUE(fine.has_value()) << fine.error().message;
  for (size_t i = 0; i < 96; ++i) EXPECT_THAT(fine->values[i], Optional(DoubleNear(2, 0.05))) << i;
  for (size_t i = 96; i < 100; ++i) EXPECT_EQ(fine->values[i], std::nullopt) << i;
}

TEST_F(ProfileQuery, TheStripOfAProcessIsExactWhereItsThreadsWereFollowed) {
  constexpr int64_t kBegin = 20'000'000'000;
  constexpr int64_t kBucketNs = 10'000'000;
  Add(Rows(model::kSources, {{.source = {9, 11},
                              .host = "here",
                              .cpus = 8,
                              .sampling_hz = 20,
                              .started_ns = kBegin,
                              .ended_ns = kBegin + 2 * kNanosPerSecond}}));
  // In the first second two threads are on a CPU for 1 ms and 3 ms of every 10 ms, and nothing is sampled.
  const auto follow = [&](int32_t tid, const std::string& metric, int64_t value_ns) {
    Add(Rows(model::kSignals, {{.start_ns = kBegin,
                                .bucket_ns = kBucketNs,
                                .metric = metric,
                                .process = kSampled,
                                .tid = tid,
                                .other = std::nullopt,
                                .values = std::vector<int64_t>(100, value_ns)}}));
  };
  follow(100, "thread.running", 1'000'000);
  follow(100, "thread.waiting", 9'000'000);
  follow(101, "thread.running", 3'000'000);
  // The length of a damaged row is beyond 64 bits.
  Add(Rows(model::kSignals, {{.start_ns = kBegin,
                              .bucket_ns = int64_t{1} << 62,
                              .metric = "thread.running",
                              .process = kSampled,
                              .tid = 102,
                              .other = std::nullopt,
                              .values = {1, 1, 1, 1}}}));
  // In the second one nobody follows them, and one sample of 50 ms is met.
  Add(Rows(model::kSamples, {{.time_ns = kBegin + 1'700'000'000,
                              .process = kSampled,
                              .tid = 100,
                              .stack = kMainStack,
                              .weight_ns = 50'000'000}}));
  Selection selection{.from_ns = kBegin, .to_ns = kBegin + 2 * kNanosPerSecond, .processes = {kSampled}};
  const auto values = [&](int buckets) {
    const auto strip = ReadCpuStrip(*store_, selection, buckets);
    EXPECT_TRUE(strip.has_value()) << strip.error().message;
    return strip.has_value() ? strip->values : std::vector<std::optional<double>>();
  };
  EXPECT_THAT(values(4), ElementsAre(Optional(DoubleNear(0.4, 1e-9)), Optional(DoubleNear(0.4, 1e-9)),
                                     Optional(0.0), Optional(DoubleNear(0.1, 1e-9))));
  // Not multiples of the signals' buckets, and finer than the samples support.
  const auto fine = values(130);
  for (size_t i = 0; i < 64; ++i) EXPECT_THAT(fine[i], Optional(DoubleNear(0.4, 1e-6))) << i;
  EXPECT_THAT(fine[110], Optional(DoubleNear(0.25, 1e-6))) << "50 ms in the ninth of ten buckets";
  EXPECT_THAT(fine[129], Optional(0.0));
  // Finer than the signals.
  EXPECT_THAT(values(600)[299], Optional(DoubleNear(0.4, 1e-9)));
  selection.tid = 100;
  EXPECT_THAT(values(4)[0], Optional(DoubleNear(0.1, 1e-9)));
}

TEST_F(ProfileQuery, TheStripDistrustsSignalsThatLackWhatWasSampled) {
  constexpr int64_t kBegin = 20'000'000'000;
  Add(Rows(model::kSources, {{.source = {9, 11},
                              .host = "here",
                              .cpus = 8,
                              .sampling_hz = 20,
                              .started_ns = kBegin,
                              .ended_ns = kBegin + kNanosPerSecond}}));
  Add(Rows(model::kSignals, {{.start_ns = kBegin,
                              .bucket_ns = 10'000'000,
                              .metric = "thread.waiting",
                              .process = kSampled,
                              .tid = 100,
                              .other = std::nullopt,
                              .values = std::vector<int64_t>(100, 10'000'000)}}));
  for (int i = 0; i < 10; ++i)
    Add(Rows(model::kSamples, {{.time_ns = kBegin + int64_t{i} * 100'000'000,
                                .process = kSampled,
                                .tid = 101,
                                .stack = kMainStack,
                                .weight_ns = 50'000'000}}));
  const auto strip = ReadCpuStrip(
      *store_, {.from_ns = kBegin, .to_ns = kBegin + kNanosPerSecond, .processes = {kSampled}}, 1);
  ASSERT_TRUE(strip.has_value()) << strip.error().message;
  EXPECT_THAT(strip->values, ElementsAre(Optional(0.5)));
}

TEST_F(ProfileQuery, TheStripIsEmptyWithoutARunningAgent) {
  Add(Rows(model::kSources, {{.source = {9, 10}, .host = "here", .started_ns = 15'000'000'000}}));  // killed
  // No sample has arrived for the last 3 s before the commit.
  Add(Rows(model::kBatches, {{.spool = {8, 8}, .sequence = 1, .rows = 1, .committed_ns = 19'500'000'000}}));
  const auto strip = ReadCpuStrip(*store_, {.from_ns = 8'000'000'000, .to_ns = 20'000'000'000}, 6);
  ASSERT_TRUE(strip.has_value()) << strip.error().message;
  EXPECT_THAT(strip->values, ElementsAre(Optional(0.0), std::nullopt, std::nullopt, Optional(0.0),
                                         Optional(0.0), std::nullopt));
  EXPECT_EQ(ReadCpuStrip(*store_, {}, 0).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ProfileQuery, TheOverviewTellsSourcesTimeAndDrops) {
  Add(Rows(model::kDrops, {{1, {9, 9}, model::DropReason::kRingFull, 3},
                           {2, {9, 9}, model::DropReason::kNoSymbol, 5},
                           {3, {9, 9}, model::DropReason::kRingFull, 4}}));
  auto overview = ReadOverview(*store_);
  ASSERT_TRUE(overview.has_value()) << overview.error().message;
  ASSERT_EQ(overview->sources.size(), 1u);
  EXPECT_EQ(overview->sources[0].host, "here");
  EXPECT_THAT(overview->to_ns, Optional(10'000'000'000));
  EXPECT_EQ(overview->samples, 5);
  EXPECT_FALSE(overview->simulated);
  ASSERT_EQ(overview->drops.size(), 2u);
  EXPECT_EQ(overview->drops[0].reason, "ring_full");
  EXPECT_EQ(overview->drops[0].count, 7);
  EXPECT_THAT(overview->drops[0].meaning, testing::HasSubstr("buffer was full"));

  Add(Rows(model::kDevices, {{.device = {6, 6}, .simulated = true}}));
  EXPECT_TRUE(ReadOverview(*store_)->simulated);
}

TEST(HostileStore, DatesThatCantBeSubtractedAreBounded) {
  auto store = CreateInMemory().value();
  const auto source = [](uint64_t id, int64_t from_ns, int64_t to_ns) {
    return model::Source{.source = {id, id},
                         .kind = model::SourceKind::kRecord,
                         .host = "there",
                         .started_ns = from_ns,
                         .ended_ns = to_ns};
  };
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const model::Batch batches[] = {Rows(model::kSources, {source(1, kMin, 5), source(2, 5, kMax)})};
  ASSERT_TRUE(store->Append(batches).has_value());
  const auto profile = ReadProfile(*store, {});
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_LT(profile->start_ns, 0);
  EXPECT_GT(profile->end_ns, int64_t{4'000'000'000} * 1'000'000'000);
  int64_t length_ns = 0;
  EXPECT_FALSE(__builtin_sub_overflow(profile->end_ns, profile->start_ns, &length_ns));
}

TEST(EmptyStore, AnswersEveryQuestionWithNothing) {
  auto store = CreateInMemory().value();
  EXPECT_TRUE(ReadProfile(*store, {})->samples.empty());
  EXPECT_TRUE(ReadProcesses(*store, {})->empty());
  EXPECT_THAT(ReadCpuStrip(*store, {}, 3)->values, ElementsAre(std::nullopt, std::nullopt, std::nullopt));
  EXPECT_EQ(ReadOverview(*store)->from_ns, std::nullopt);
}

}  // namespace
}  // namespace gpusonde::store
