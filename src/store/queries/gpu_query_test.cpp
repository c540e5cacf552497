// SPDX-License-Identifier: Apache-2.0
#include "store/queries/gpu_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/tables/api_calls.h"
#include "model/tables/devices.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/graph_nodes.h"
#include "model/tables/kernel_windows.h"
#include "model/tables/kernels.h"
#include "model/tables/locations.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/metrics.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/syncs.h"
#include "model/tables/threads.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using model::Selection;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr Id128 kForward{4, 1}, kBackward{4, 2}, kCapture{4, 3};
constexpr Id128 kTrainer{5, 1}, kOther{5, 2};
constexpr Id128 kGpu0{6, 0}, kGpu1{6, 1};
constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();

// Ten seconds on two devices; each test puts work there.
class GpuQuery : public MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kSources,
        {{.source = {9, 9}, .host = "here", .cpus = 2, .started_ns = 0, .ended_ns = 10 * kSecond}});
    Add(model::kProcesses, {{.process = kTrainer, .pid = 100, .name = "python3"},
                            {.process = kOther, .pid = 200, .name = "other"}});
    Add(model::kThreads, {{kTrainer, 100, "main"}, {kTrainer, 101, "autograd"}});
    Add(model::kDevices,
        {{.device = kGpu1, .ordinal = 1, .uuid = "GPU-1", .name = "NVIDIA X"},
         {.device = kGpu0, .ordinal = 0, .uuid = "GPU-0", .name = "NVIDIA X", .simulated = true}});
    const auto frame = [this](uint64_t number, const std::string& name) {
      Add(model::kFunctions, {{{2, number}, name, name, "train.py", 1}});
      Add(model::kLocations,
          {{{3, number}, model::FrameKind::kPython, std::nullopt, std::nullopt, {{2, number}}, {7}}});
    };
    frame(1, "main");
    frame(2, "forward");
    frame(3, "backward");
    frame(4, "capture");
    Add(model::kStacks,
        {{kForward, {{3, 2}, {3, 1}}}, {kBackward, {{3, 3}, {3, 1}}}, {kCapture, {{3, 4}, {3, 1}}}});
  }

  // What a launch of `kernel` leaves behind; not sampled without a stack.
  void Launch(int64_t correlation, int64_t start_ns, int64_t duration_ns,
              std::optional<Id128> stack = std::nullopt, double probability = 1,
              const std::string& kernel = "_Z4gemmv", int64_t stream = 7) {
    Add(model::kKernels, {Kernel(correlation, start_ns, duration_ns, kernel, stream)});
    if (stack.has_value()) Add(model::kApiCalls, {Call(correlation, start_ns, *stack, probability)});
  }
  static model::Kernel Kernel(int64_t correlation, int64_t start_ns, int64_t duration_ns,
                              const std::string& kernel = "_Z4gemmv", int64_t stream = 7) {
    return {.process = kTrainer,
            .device = kGpu0,
            .session = 1,
            .correlation = correlation,
            .stream = stream,
            .start_ns = start_ns,
            .end_ns = start_ns + duration_ns,
            .name = kernel};
  }
  static model::ApiCall Call(int64_t correlation, int64_t at_ns, Id128 stack, double probability = 1) {
    return {.process = kTrainer,
            .tid = stack == kBackward ? 101 : 100,
            .session = 1,
            .correlation = correlation,
            .start_ns = std::max<int64_t>(at_ns - 5000, 0),
            .end_ns = at_ns,
            .domain = "cuda_runtime",
            .name = "cudaLaunchKernel",
            .stack = stack,
            .probability = probability};
  }
  void CpuSample(int64_t time_ns, Id128 process = kTrainer) {
    Add(model::kSamples,
        {{.time_ns = time_ns, .process = process, .tid = 100, .stack = kForward, .weight_ns = 10}});
  }

  model::Profile Read(const Selection& selection = {}) {
    auto profile = ReadGpuProfile(*store_, selection);
    EXPECT_TRUE(profile.has_value()) << profile.error().message;
    return std::move(profile).value_or(model::Profile{});
  }

  using Line = std::pair<int64_t, int64_t>;
  // "root … leaf" → (runs, ns)
  static std::map<std::string, Line> Folded(const model::Profile& profile) {
    std::map<std::string, Line> folded;
    for (const auto& sample : profile.samples) {
      std::string line;
      const auto& stack = profile.stacks.at(static_cast<size_t>(sample.stack));
      for (auto at = stack.rbegin(); at != stack.rend(); ++at)
        line += (line.empty() ? "" : " ") + model::FrameName(profile, *at);
      folded[line].first += sample.count;
      folded[line].second += sample.weight_ns;
    }
    return folded;
  }
  std::map<std::string, Line> ReadFolded(const Selection& selection = {}) { return Folded(Read(selection)); }
  int64_t IdleSamples(Selection selection) {
    selection.while_gpu_idle = true;
    auto profile = ReadProfile(*store_, selection);
    EXPECT_TRUE(profile.has_value()) << profile.error().message;
    int64_t count = 0;
    for (const auto& sample : profile->samples) count += sample.count;
    return count;
  }
};

TEST_F(GpuQuery, AKernelsExactTimeIsDividedByItsSampledLaunches) {
  Launch(1, kSecond, 600, kForward, 0.5);
  Launch(2, kSecond + 10'000, 300, kBackward, 0.25);
  Launch(3, kSecond + 20'000, 101);  // not sampled
  // Estimates: 600/0.5 = 1200 and 300/0.25 = 1200, so half each of 1001 ns; the odd one goes to the first.
  const model::Profile profile = Read();
  EXPECT_THAT(Folded(profile), UnorderedElementsAre(Pair("main forward gemm()", Line(1, 501)),
                                                    Pair("main backward gemm()", Line(2, 500))));
  EXPECT_EQ(profile.type, model::ProfileType::kGpu);
  ASSERT_THAT(profile.launch_groups, SizeIs(1));
  EXPECT_EQ(profile.launch_groups[0].total_ns, 1001);
  EXPECT_DOUBLE_EQ(profile.launch_groups[0].launches.time_ns, 2400);
  EXPECT_DOUBLE_EQ(profile.launch_groups[0].launches.variance_ns2,
                   0.5 / 0.25 * 600 * 600 + 0.75 / 0.0625 * 300 * 300);
  for (const auto& sample : profile.samples) {
    EXPECT_EQ(sample.launch_group, 0);
    EXPECT_THAT(sample.stream, Optional(7));
    EXPECT_TRUE(profile.devices.at(static_cast<size_t>(sample.device)).simulated);
    EXPECT_FALSE(sample.graph);
  }
  const auto& leaf = profile.locations.at(
      static_cast<size_t>(profile.stacks.at(static_cast<size_t>(profile.samples[0].stack)).front()));
  EXPECT_EQ(leaf.kind, model::FrameKind::kGpu);
  EXPECT_EQ(profile.functions.at(static_cast<size_t>(leaf.lines[0].function)).system_name, "_Z4gemmv");
}

TEST_F(GpuQuery, TotalsAreExactWhateverTheSampling) {
  std::mt19937_64 random(3);
  std::vector<model::Kernel> kernels;
  std::vector<model::ApiCall> calls;
  std::map<std::string, int64_t> truth;
  for (int64_t i = 0; i < 5000; ++i) {
    const std::string name = "k" + std::to_string(random() % 20);
    const auto duration_ns = static_cast<int64_t>(random() % 100'000);
    kernels.push_back(Kernel(i, kSecond + i * 1'000'000, duration_ns, name));
    truth[name] += duration_ns;
    if (random() % 30 == 0)
      calls.push_back(Call(i, kernels.back().start_ns, random() % 3 == 0 ? kForward : kBackward, 1.0 / 30));
  }
  Add(model::kKernels, kernels);
  Add(model::kApiCalls, calls);
  std::map<std::string, int64_t> read;
  for (const auto& [line, values] : ReadFolded()) read[line.substr(line.rfind(' ') + 1)] += values.second;
  truth.erase("");
  for (const auto& [name, duration_ns] : truth)
    EXPECT_EQ(read[name] + read["[stack not sampled] " + name], duration_ns) << name;
}

TEST_F(GpuQuery, KernelsWithoutASampledLaunchHaveAnUnknownStack) {
  Launch(1, kSecond, 600, kForward);
  Launch(2, kSecond, 100, std::nullopt, 1, "relu");
  EXPECT_THAT(ReadFolded(), UnorderedElementsAre(Pair("main forward gemm()", Line(1, 600)),
                                                 Pair("[stack not sampled] relu", Line(1, 100))));
}

// As what was launched before a trace began: to give it to the launches that are there would be a guess.
TEST_F(GpuQuery, WorkOfATraceThatNoneOfItsLaunchesStartedHasAnUnknownStack) {
  Launch(1, kSecond, 600, kForward);
  Launch(2, kSecond + 10'000, 250, kBackward);
  Launch(3, kSecond + 20'000, 100);
  Launch(4, kSecond + 30'000, 50);
  EXPECT_THAT(ReadFolded(), UnorderedElementsAre(Pair("main forward gemm()", Line(2, 706)),
                                                 Pair("main backward gemm()", Line(2, 294))))
      << "of a sample, an estimate";
  Add(model::kSources, {{.source = {9, 8}, .kind = model::SourceKind::kImport, .host = ""}});
  Add(model::kProcesses, {{.process = kTrainer, .source = {9, 8}, .pid = 100, .name = "python3"}});
  const model::Profile profile = Read();
  EXPECT_THAT(Folded(profile), UnorderedElementsAre(Pair("main forward gemm()", Line(1, 600)),
                                                    Pair("main backward gemm()", Line(1, 250)),
                                                    Pair("[stack not sampled] gemm()", Line(2, 150))));
  ASSERT_THAT(profile.launch_groups, SizeIs(1));
  EXPECT_EQ(profile.launch_groups[0].total_ns, 850);
}

TEST_F(GpuQuery, LostRecordsCountInTheTotalOfTheirKernel) {
  Launch(1, kSecond, 600, kForward);
  const auto lost = [](const std::string& name, model::WorkPart part) {
    return model::KernelWindow{.start_ns = kSecond,
                               .end_ns = 2 * kSecond,
                               .part = part,
                               .process = kTrainer,
                               .device = kGpu0,
                               .name = name,
                               .count = 3,
                               .duration_ns = 1000};
  };
  Add(model::kKernelWindows,
      {lost("_Z4gemmv", model::WorkPart::kLost), lost("relu", model::WorkPart::kLost),
       lost("_Z4gemmv", model::WorkPart::kAll)});  // the last one sums rows that are there
  EXPECT_THAT(ReadFolded(), UnorderedElementsAre(Pair("main forward gemm()", Line(4, 1600)),
                                                 Pair("[stack not sampled] relu", Line(3, 1000))));
  EXPECT_THAT(ReadFolded({.from_ns = 0, .to_ns = kSecond}), IsEmpty());
  EXPECT_THAT(ReadFolded({.device = kGpu0, .stream = 7}),
              ElementsAre(Pair("main forward gemm()", Line(1, 600))))
      << "of lost records nobody knows the stream";
}

TEST_F(GpuQuery, CorrelationIdsJoinWithinSessionAndAMinute) {
  Launch(1, 100 * kSecond, 600);
  Add(model::kApiCalls, {Call(1, 30 * kSecond, kForward)});
  model::ApiCall other_session = Call(1, 100 * kSecond, kForward);
  other_session.session = 2;
  model::ApiCall impossible = Call(1, 100 * kSecond, kForward, 0);
  Add(model::kApiCalls, {other_session, impossible});
  EXPECT_THAT(ReadFolded(), ElementsAre(Pair("[stack not sampled] gemm()", Line(1, 600))));
  Add(model::kApiCalls, {Call(1, 41 * kSecond, kBackward)});
  EXPECT_THAT(ReadFolded(), ElementsAre(Pair("main backward gemm()", Line(1, 600))));
}

TEST_F(GpuQuery, CopiesAndSetsAreLeavesByTheSameRule) {
  Add(model::kMemcpys, {{.process = kTrainer,
                         .device = kGpu0,
                         .session = 1,
                         .correlation = 1,
                         .stream = 7,
                         .start_ns = kSecond,
                         .end_ns = kSecond + 50,
                         .kind = "htod"}});
  Add(model::kMemsets, {{.process = kTrainer,
                         .device = kGpu0,
                         .session = 1,
                         .correlation = 2,
                         .stream = 7,
                         .start_ns = kSecond,
                         .end_ns = kSecond + 20}});
  Add(model::kApiCalls, {Call(1, kSecond, kForward)});
  EXPECT_THAT(ReadFolded(), UnorderedElementsAre(Pair("main forward [memcpy htod]", Line(1, 50)),
                                                 Pair("[stack not sampled] [memset]", Line(1, 20))));
}

TEST_F(GpuQuery, GraphWorkIsUnderWhatCapturedItElseUnderItsLaunch) {
  // Node 10 was captured, 20 is its clone in the graph that was instantiated, 30 the clone of that; nobody
  // saw 40 being made.
  const auto node = [](int64_t id, std::optional<int64_t> original, std::optional<Id128> stack) {
    return model::GraphNode{.process = kTrainer,
                            .session = 1,
                            .graph = id,
                            .node = id,
                            .original_node = original,
                            .stack = stack};
  };
  Add(model::kGraphNodes, {node(10, std::nullopt, kCapture), node(20, 10, std::nullopt),
                           node(30, 20, std::nullopt), node(50, 50, std::nullopt)});
  const auto kernel = [](int64_t graph_node, int64_t duration_ns, int64_t correlation, int32_t session) {
    model::Kernel row = Kernel(correlation, kSecond, duration_ns);
    row.graph_node = graph_node;
    row.session = session;
    return row;
  };
  Add(model::kKernels, {kernel(30, 100, 1, 1), kernel(30, 100, 2, 5), kernel(40, 30, 1, 1),
                        kernel(40, 12, 1, 1), kernel(50, 5, 1, 1)});
  Add(model::kApiCalls, {Call(1, kSecond, kForward, 0.5)});
  const model::Profile profile = Read();
  EXPECT_THAT(Folded(profile),
              UnorderedElementsAre(Pair("main capture [captured in graph] gemm()", Line(2, 200)),
                                   Pair("main forward [graph launch] gemm()", Line(3, 47))));
  for (const auto& sample : profile.samples) {
    EXPECT_TRUE(sample.graph);
    EXPECT_EQ(sample.launch_group == -1, sample.weight_ns == 200) << "what is known of capture is exact";
  }
  // The launch was sampled once, so its kernels are one duration: (1 - ½) / ½² 47², not the sum of squares.
  ASSERT_THAT(profile.launch_groups, SizeIs(1));
  EXPECT_DOUBLE_EQ(profile.launch_groups[0].launches.variance_ns2, 2 * 47 * 47);
}

TEST_F(GpuQuery, SelectsByTimeProcessThreadDeviceStreamAndName) {
  Launch(1, kSecond, 600, kForward);
  Launch(2, 2 * kSecond, 200, kBackward);
  Launch(3, 2 * kSecond, 50, kBackward, 1, "relu", 9);
  model::Kernel elsewhere = Kernel(4, 2 * kSecond, 7, "_Z4gemmv");
  elsewhere.process = kOther;
  elsewhere.device = kGpu1;
  Add(model::kKernels, {elsewhere});
  const auto total = [&](const Selection& selection) {
    int64_t sum = 0;
    for (const auto& [line, values] : ReadFolded(selection)) sum += values.second;
    return sum;
  };
  EXPECT_EQ(total({}), 857);
  EXPECT_EQ(total({.from_ns = kSecond, .to_ns = kSecond + 1}), 600) << "what starts there counts whole";
  EXPECT_EQ(total({.processes = {kOther}}), 7);
  EXPECT_EQ(total({.processes = {kOther, kTrainer}}), total({}));
  EXPECT_EQ(total({.device = kGpu0}), 850);
  EXPECT_EQ(total({.device = kGpu0, .stream = 9}), 50);
  EXPECT_EQ(total({.processes = {kTrainer}, .tid = 101}), 250);
  EXPECT_EQ(total({.filter = "RELU"}), 50);
  EXPECT_EQ(total({.filter = "forward"}), 600);
  EXPECT_EQ(total({.filter = "not sampled"}), 7);
  EXPECT_EQ(total({.filter = "nowhere"}), 0);
}

TEST_F(GpuQuery, AnIntervalIsOfTheWholeKernelEvenWhenOnlyAPartIsSelected) {
  Launch(1, kSecond, 600, kForward, 0.5);
  Launch(2, kSecond, 300, kBackward, 0.5);
  const model::Profile part = Read({.filter = "forward"});
  ASSERT_THAT(part.samples, SizeIs(1));
  const auto& group = part.launch_groups.at(static_cast<size_t>(part.samples[0].launch_group));
  EXPECT_GT(model::ShareVariance(group.total_ns, part.samples[0].launches, group.launches), 0);
}

TEST_F(GpuQuery, RowsThatMakeNoSenseGiveNoNonsense) {
  model::Kernel backwards = Kernel(1, kSecond, -5);
  model::Kernel endless = Kernel(2, 5, 0, "endless");
  endless.end_ns = kLatest;
  model::Kernel ancient = Kernel(3, std::numeric_limits<int64_t>::min(), 0);
  ancient.end_ns = kLatest;
  model::Kernel nameless = Kernel(4, kSecond, 10, "");
  nameless.device = {6, 66};
  Add(model::kKernels, {backwards, endless, endless, ancient, nameless});
  model::ApiCall lost_stack = Call(4, kSecond, {4, 99});
  Add(model::kApiCalls, {lost_stack});
  // Bounded by model::BoundSums: 2^62 divided between two samples.
  EXPECT_THAT(ReadFolded(),
              UnorderedElementsAre(Pair("[stack not sampled] endless", Line(2, int64_t{1} << 61)),
                                   Pair("[unknown] [kernel without a name]", Line(1, 10))));
  ASSERT_TRUE(ReadGpuStrips(*store_, {}, 10).has_value());
  const auto uses = ReadDeviceUse(*store_, {});
  ASSERT_TRUE(uses.has_value()) << uses.error().message;
  EXPECT_THAT(*uses, SizeIs(3)) << "a device without a row is still there";
}

TEST_F(GpuQuery, UsersOfGpusAreThoseWithWorkOrMemory) {
  Launch(1, kSecond, kSecond);
  Launch(2, kSecond + kSecond / 2, kSecond, std::nullopt, 1, "overlaps", 9);
  model::Kernel others = Kernel(3, 4 * kSecond, kSecond);
  others.process = kOther;
  others.device = kGpu1;
  model::Kernel of_nobody = Kernel(4, 8 * kSecond, kSecond);
  of_nobody.process = {5, 9};
  Add(model::kKernels, {others, of_nobody});
  Add(model::kGpuSessions,
      {{.process = kOther, .session = 1, .start_ns = 3 * kSecond, .end_ns = 9 * kSecond / 2},
       {.process = kOther, .session = 2, .start_ns = 4 * kSecond, .end_ns = 8 * kSecond}});
  const Id128 holder{5, 3};
  Add(model::kProcesses, {{.process = holder, .pid = 50, .command = "hold", .exited_ns = 9 * kSecond}});
  const auto memory = [](int64_t time_ns, Id128 device, Id128 process, double bytes) {
    return model::MetricValue{.time_ns = time_ns,
                              .device = device,
                              .process = process,
                              .metric = "gpu.process.memory.used",
                              .value = bytes};
  };
  Add(model::kMetrics,
      {memory(2 * kSecond, kGpu0, holder, 4096), memory(kSecond, kGpu0, holder, 1),
       memory(3 * kSecond, kGpu1, kTrainer, 1e300), memory(6 * kSecond, kGpu0, kTrainer, 7)});

  const auto users = ReadGpuUsers(*store_, {.from_ns = 0, .to_ns = 5 * kSecond});
  ASSERT_TRUE(users.has_value()) << users.error().message;
  ASSERT_THAT(*users, SizeIs(3));
  EXPECT_EQ((*users)[0].command, "hold");
  EXPECT_THAT((*users)[0].exited_ns, Optional(9 * kSecond));
  ASSERT_THAT((*users)[0].devices, SizeIs(1));
  EXPECT_EQ((*users)[0].devices[0].busy_ns, 0);
  EXPECT_THAT((*users)[0].devices[0].memory_bytes, Optional(4096));
  EXPECT_EQ((*users)[0].observed_ns, 0) << "it was not profiled";
  EXPECT_EQ((*users)[1].process, kTrainer);
  ASSERT_THAT((*users)[1].devices, SizeIs(1));
  EXPECT_EQ((*users)[1].devices[0].kernels, 2);
  EXPECT_EQ((*users)[1].devices[0].busy_ns, 3 * kSecond / 2);
  EXPECT_EQ((*users)[1].observed_ns, 3 * kSecond / 2) << "without a row, a session lasts as its work";
  EXPECT_EQ((*users)[1].devices[0].memory_bytes, std::nullopt) << "read after the range, or absurd";
  EXPECT_EQ((*users)[2].process, kOther);
  EXPECT_EQ((*users)[2].devices[0].device, kGpu1);
  EXPECT_EQ((*users)[2].observed_ns, 2 * kSecond) << "cut to the range, and united";

  const auto later = ReadGpuUsers(*store_, {.from_ns = 5 * kSecond, .to_ns = 10 * kSecond});
  ASSERT_THAT(*later, SizeIs(2)) << "a process without a row is still there";
  EXPECT_EQ((*later)[0].pid, 0);
  EXPECT_EQ((*later)[0].devices[0].busy_ns, kSecond);
  EXPECT_THAT((*later)[1].devices[0].memory_bytes, Optional(7));
  EXPECT_THAT(*ReadGpuUsers(*store_, {.from_ns = 5, .to_ns = 5}), IsEmpty());
}

TEST_F(GpuQuery, UsersOfGpusHaveTheirProfilingOverhead) {
  Launch(1, 200 * kSecond, kSecond);
  const auto row = [](int64_t time_ns, std::string metric, double value) {
    return model::MetricValue{
        .time_ns = time_ns, .process = kTrainer, .metric = std::move(metric), .value = value};
  };
  Add(model::kMetrics,
      {row(2 * kSecond, "listening.cost", 9), row(100 * kSecond, "listening.budget", 0.5),
       row(100 * kSecond, "listening.spent", 0.25), row(160 * kSecond, "listening.spent", 0.375),
       row(160 * kSecond, "listening.budget", 0.5)});
  auto users = ReadGpuUsers(*store_, {.from_ns = 200 * kSecond, .to_ns = 202 * kSecond});
  ASSERT_TRUE(users.has_value()) << users.error().message;
  ASSERT_THAT(*users, SizeIs(1));
  ASSERT_TRUE((*users)[0].overhead.has_value());
  EXPECT_EQ((*users)[0].overhead->budget, 0.5);
  EXPECT_EQ((*users)[0].overhead->spent, 0.375) << "the last";
  EXPECT_EQ((*users)[0].overhead->cost, std::nullopt) << "too old";
  Add(model::kMetrics,
      {row(170 * kSecond, "listening.cost", 2), row(170 * kSecond, "listening.cost.low", 1.5),
       row(170 * kSecond, "listening.cost.high", 2.5)});
  users = ReadGpuUsers(*store_, {.from_ns = 200 * kSecond, .to_ns = 202 * kSecond});
  EXPECT_THAT((*users)[0].overhead->cost, Optional(2));
  EXPECT_THAT((*users)[0].overhead->cost_low, Optional(1.5));
  EXPECT_THAT((*users)[0].overhead->cost_high, Optional(2.5));
}

TEST_F(GpuQuery, ADeviceThatOnlyCopiesIsBusy) {
  Add(model::kMemcpys,
      {{.process = kTrainer, .device = kGpu0, .session = 1, .start_ns = kSecond, .end_ns = 2 * kSecond}});
  const auto uses = ReadDeviceUse(*store_, {});
  ASSERT_THAT(*uses, SizeIs(2));
  EXPECT_EQ((*uses)[0].busy_ns, kSecond);
}

TEST_F(GpuQuery, ADeviceThatOnlySetsMemoryIsBusy) {
  Add(model::kMemsets,
      {{.process = kTrainer, .device = kGpu0, .session = 1, .start_ns = kSecond, .end_ns = 4 * kSecond}});
  const auto uses = ReadDeviceUse(*store_, {});
  ASSERT_THAT(*uses, SizeIs(2));
  EXPECT_EQ((*uses)[0].busy_ns, 3 * kSecond);
}

TEST_F(GpuQuery, BusyTimeCountsOverlappingWorkOnce) {
  Launch(1, kSecond, kSecond);
  Launch(2, kSecond + kSecond / 2, kSecond, std::nullopt, 1, "other", 9);
  Launch(3, 9 * kSecond, kSecond / 2);
  Add(model::kSyncs, {{.process = kTrainer,
                       .device = kGpu0,
                       .session = 1,
                       .correlation = 5,
                       .start_ns = 9 * kSecond,
                       .end_ns = 10 * kSecond}});
  const auto uses = ReadDeviceUse(*store_, {});
  ASSERT_TRUE(uses.has_value()) << uses.error().message;
  ASSERT_THAT(*uses, SizeIs(2));
  EXPECT_EQ((*uses)[0].device.uuid, "GPU-0");
  EXPECT_TRUE((*uses)[0].device.simulated);
  EXPECT_EQ((*uses)[0].busy_ns, 2 * kSecond);
  EXPECT_EQ((*uses)[0].observed_ns, 9 * kSecond) << "from the first kernel to the last wait";
  EXPECT_EQ((*uses)[0].kernels, 3);
  ASSERT_THAT((*uses)[0].streams, SizeIs(2));
  EXPECT_EQ((*uses)[0].streams[0].stream, 7);
  EXPECT_EQ((*uses)[0].streams[0].busy_ns, kSecond * 3 / 2);
  EXPECT_EQ((*uses)[1].busy_ns, 0);

  const auto strips = ReadGpuStrips(*store_, {}, 10);
  ASSERT_TRUE(strips.has_value()) << strips.error().message;
  ASSERT_THAT(*strips, SizeIs(1)) << "the other device did nothing";
  EXPECT_THAT((*strips)[0].strip.values,
              ElementsAre(std::nullopt, Optional(1.0), Optional(0.5), Optional(0.0), Optional(0.0),
                          Optional(0.0), Optional(0.0), Optional(0.0), Optional(0.0), Optional(0.5)));
  const auto gap = ReadGpuStrips(*store_, {.from_ns = 5 * kSecond, .to_ns = 7 * kSecond}, 2);
  ASSERT_THAT(*gap, SizeIs(1)) << "nothing ran, and that was seen";
  EXPECT_THAT((*gap)[0].strip.values, ElementsAre(Optional(0.0), Optional(0.0)));
}

TEST_F(GpuQuery, TimeOutsideSessionsIsNotIdle) {
  Launch(1, kSecond, kSecond);
  Launch(2, 3 * kSecond, kSecond);
  model::Kernel later = Kernel(1, 7 * kSecond, kSecond);
  later.session = 2;
  Add(model::kKernels, {later});
  const auto strips = ReadGpuStrips(*store_, {}, 10);
  ASSERT_THAT(*strips, SizeIs(1));
  EXPECT_THAT((*strips)[0].strip.values,
              ElementsAre(std::nullopt, Optional(1.0), Optional(0.0), Optional(1.0), std::nullopt,
                          std::nullopt, std::nullopt, Optional(1.0), std::nullopt, std::nullopt));
  for (int64_t second = 0; second < 10; ++second) CpuSample(second * kSecond + kSecond / 2);
  EXPECT_EQ(IdleSamples({}), 1);
  EXPECT_EQ(IdleSamples({.from_ns = 2 * kSecond, .to_ns = 3 * kSecond}), 1)
      << "the session is known from its work outside the selection";
}

TEST_F(GpuQuery, ASessionLastsAsLongAsReported) {
  Launch(1, 4 * kSecond, kSecond);
  Add(model::kGpuSessions,
      {{.process = kTrainer, .session = 1, .start_ns = 2 * kSecond, .end_ns = 7 * kSecond},
       {.process = kTrainer, .session = 2, .start_ns = 8 * kSecond, .end_ns = std::nullopt}});
  model::Kernel later = Kernel(1, 9 * kSecond, kSecond / 2);
  later.session = 2;
  Add(model::kKernels, {later});
  const auto strips = ReadGpuStrips(*store_, {}, 10);
  ASSERT_THAT(*strips, SizeIs(1));
  EXPECT_THAT((*strips)[0].strip.values,
              ElementsAre(std::nullopt, std::nullopt, Optional(0.0), Optional(0.0), Optional(1.0),
                          Optional(0.0), Optional(0.0), std::nullopt, Optional(0.0), Optional(0.5)))
      << "what has no end goes on";
  EXPECT_EQ((*ReadDeviceUse(*store_, {}))[0].observed_ns, 7 * kSecond);
  for (int64_t second = 0; second < 10; ++second) CpuSample(second * kSecond + kSecond / 2);
  EXPECT_EQ(IdleSamples({}), 6);
}

TEST_F(GpuQuery, WhileIdleMeansThatNoProcessUsedTheDevices) {
  Launch(1, 0, 1);
  Launch(2, 10 * kSecond, 1);
  model::Kernel others = Kernel(9, 2 * kSecond, 2 * kSecond);  // on the same device
  others.process = kOther;
  model::Kernel elsewhere = Kernel(9, 6 * kSecond, 2 * kSecond);
  elsewhere.process = kOther;
  elsewhere.device = kGpu1;
  Add(model::kKernels, {others, elsewhere});
  Add(model::kMemcpys, {{.process = kTrainer,
                         .device = kGpu0,
                         .session = 1,
                         .start_ns = 8 * kSecond,
                         .end_ns = 9 * kSecond,
                         .kind = "dtoh"}});
  for (int64_t second = 0; second < 10; ++second) {
    CpuSample(second * kSecond + kSecond / 2);
    CpuSample(second * kSecond + kSecond / 2, kOther);
  }
  EXPECT_EQ(IdleSamples({.processes = {kTrainer}}), 7) << "not at 2, 3 and 8 s";
  EXPECT_EQ(IdleSamples({.processes = {kTrainer}, .device = kGpu1}), 8) << "that one is busy at 6 and 7 s";
  EXPECT_EQ(IdleSamples({}), 2 * 5) << "all devices are idle";
  EXPECT_EQ(IdleSamples({.processes = {kTrainer}, .filter = "nowhere"}), 0);
  const auto strip = ReadCpuStrip(*store_, {.processes = {kTrainer}, .while_gpu_idle = true}, 10);
  ASSERT_TRUE(strip.has_value()) << strip.error().message;
  EXPECT_GT(strip->values[1].value_or(0), 0);
  EXPECT_EQ(strip->values[2].value_or(-1), 0);
  EXPECT_THAT(*ReadProcesses(*store_, {.while_gpu_idle = true}), SizeIs(2));
  CpuSample(5 * kSecond, {5, 3});
  CpuSample(6 * kSecond, {5, 3});
  EXPECT_EQ(IdleSamples({.processes = {{5, 3}}}), 1)
      << "a process without GPU work: the devices of the others";
}

// That of an imported trace, or one that waits and is never sampled.
TEST_F(GpuQuery, AProcessWithGpuWorkAloneIsListedAfterTheOthers) {
  Launch(1, 2 * kSecond, kSecond);
  CpuSample(kSecond, kOther);
  const auto processes = ReadProcesses(*store_, {});
  ASSERT_TRUE(processes.has_value()) << processes.error().message;
  ASSERT_THAT(*processes, SizeIs(2));
  EXPECT_EQ((*processes)[0].process, kOther);
  EXPECT_EQ((*processes)[1].name, "python3");
  EXPECT_EQ((*processes)[1].pid, 100);
  EXPECT_EQ((*processes)[1].cpu_ns, 0);
  EXPECT_THAT(*ReadProcesses(*store_, {.to_ns = 2 * kSecond}), SizeIs(1)) << "it ran later";
}

TEST(GpuQueryOfAnEmptyStore, AnswersWithNothing) {
  auto store = CreateInMemory().value();
  const auto profile = ReadGpuProfile(*store, {});
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_TRUE(profile->samples.empty());
  EXPECT_TRUE(ReadDevices(*store)->empty());
  EXPECT_TRUE(ReadDeviceUse(*store, {})->empty());
  EXPECT_TRUE(ReadGpuStrips(*store, {}, 5)->empty());
  EXPECT_TRUE(ReadProfile(*store, {.while_gpu_idle = true})->samples.empty());
}

}  // namespace
}  // namespace gpusonde::store
