// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/observe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <span>
#include <string>

#include "base/testing/units.h"
#include "fleet/catalog.h"
#include "fleet/characteristics.h"
#include "fleet/observe/observation_builder.h"
#include "fleet/observe/read_work.h"
#include "model/metric_catalogue.h"
#include "model/tables/devices.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/metrics.h"
#include "model/tables/sources.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::fleet {
namespace {

using model::Selection;
using testing::ElementsAre;
using testing::SizeIs;

constexpr Id128 kProcess{5, 1}, kGpu0{6, 0}, kGpu1{6, 1}, kSource{9, 9};
constexpr int64_t kDay = 1'763'683'200 * kSecond;  // 21 Nov 2025

class ObserveTest : public store::MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kDevices, {{.device = kGpu1, .ordinal = 1, .uuid = "GPU-1", .name = "NVIDIA X"},
                          {.device = kGpu0, .ordinal = 0, .uuid = "GPU-0", .name = "NVIDIA X"}});
  }

  static model::Kernel KernelAt(int64_t start_ns, int64_t duration_ns, const std::string& name = "_Z4gemmv",
                                Id128 device = kGpu0, int64_t stream = 7) {
    return {.process = kProcess,
            .device = device,
            .session = 1,
            .context = 1,
            .stream = stream,
            .start_ns = start_ns,
            .end_ns = start_ns + duration_ns,
            .name = name,
            .grid_x = 4,
            .grid_y = 2,
            .grid_z = 1,
            .block_x = 128,
            .block_y = 1,
            .block_z = 1,
            .registers = 32,
            .static_shared_bytes = 512,
            .dynamic_shared_bytes = 512};
  }

  // A second's kernels of one kind, evenly spread from `first_ns` on.
  static model::KernelPack PackAt(int64_t second_ns, int64_t count, const std::string& name = "_Z4gemmv",
                                  int64_t first_ns = 0) {
    model::KernelPack pack{.process = kProcess,
                           .device = kGpu0,
                           .session = 1,
                           .context = 1,
                           .stream = 7,
                           .name = name,
                           .grid_x = 4,
                           .grid_y = 2,
                           .grid_z = 1,
                           .block_x = 128,
                           .block_y = 1,
                           .block_z = 1,
                           .registers = 32,
                           .static_shared_bytes = 512,
                           .dynamic_shared_bytes = 512,
                           .start_ns = second_ns,
                           .count = count};
    for (int64_t i = 0; i < count; ++i) {
      pack.offsets_ns.push_back(first_ns + i * (kSecond - first_ns) / count);
      pack.durations_ns.push_back(1'000);
      pack.correlations.push_back(i);
      pack.end_ns = second_ns + pack.offsets_ns.back() + 1'000;
    }
    pack.duration_ns = 1'000 * count;
    return pack;
  }

  std::vector<Observation> Observed(const Selection& selection = {}, const SampleSize& size = {}) {
    auto observed = Observe(*store_, selection, size);
    EXPECT_TRUE(observed.has_value()) << observed.error().message;
    return observed.value_or(Observations()).gpus;
  }
};

// Counts the statements that it passes on.
class CountingStore : public store::Store {
 public:
  explicit CountingStore(store::Store& store) : store_(store) {}

  Status Append(std::span<const model::Batch> batches) override { return store_.Append(batches); }
  Result<std::unique_ptr<store::Rows>> Query(const std::string& sql,
                                             std::span<const store::Parameter> parameters) override {
    statements_ += 1;
    return store_.Query(sql, parameters);
  }

  int statements() const { return statements_; }

 private:
  store::Store& store_;
  int statements_ = 0;
};

size_t GroupNamed(std::string_view name) {
  for (size_t i = 0; i < Characteristics().size(); ++i)
    if (Characteristics()[i].name == name) return i;
  ADD_FAILURE() << name;
  return 0;
}

TEST_F(ObserveTest, EachGpuHasItsOwnWork) {
  Add(model::kKernels, {KernelAt(kDay, 5'000), KernelAt(kDay + 9'000, 7'000, "softmax"),
                        KernelAt(kDay, 300, "elementwise", kGpu1)});
  Add(model::kMemcpys, {{.process = kProcess,
                         .device = kGpu0,
                         .start_ns = kDay,
                         .end_ns = kDay + 500,
                         .bytes = 4096,
                         .kind = "htod"}});
  const auto observed = Observed();
  ASSERT_THAT(observed, SizeIs(2));
  EXPECT_EQ(observed[0].gpu_uuid, "GPU-0");
  EXPECT_EQ(observed[1].gpu_uuid, "GPU-1");
  ObservationBuilder builder;
  const auto add = [&](const std::string& name, int64_t duration_ns) {
    builder.AddKernel({.process = kProcess,
                       .context = 1,
                       .stream = 7,
                       .name = name,
                       .grid = {4, 2, 1},
                       .block = {128, 1, 1},
                       .registers = 32,
                       .static_shared_bytes = 512,
                       .dynamic_shared_bytes = 512,
                       .duration_ns = duration_ns});
  };
  builder.AddCopy("htod", 4096, 500);
  add("_Z4gemmv", 5'000);
  add("softmax", 7'000);
  EXPECT_EQ(observed[0], builder.Build("GPU-0", "NVIDIA X"));
  EXPECT_EQ(observed[1].kernels, 1u);
}

TEST_F(ObserveTest, AGpuWithoutWorkIsIdle) {
  for (const Observation& gpu : Observed())
    EXPECT_EQ(gpu, ObservationBuilder().Build(gpu.gpu_uuid, "NVIDIA X"));
  EXPECT_THAT(Observed(), SizeIs(2));
  Add(model::kMemsets, {{.device = kGpu1, .start_ns = kDay, .end_ns = kDay + 10, .bytes = 64}});
  EXPECT_FALSE(Observed()[0].is_busy);
  EXPECT_TRUE(Observed()[1].is_busy) << "with only a set";
}

TEST_F(ObserveTest, TimeInWhichNothingRanIsNotObserved) {
  const Selection hour{.from_ns = kDay, .to_ns = kDay + 3'600 * kSecond};
  const auto observed_s = [&] { return Observe(*store_, hour)->observed_ns / kSecond; };
  EXPECT_EQ(observed_s(), 3'600) << "imported traces don't say";
  Add(model::kSources, {{.source = {8, 1},
                         .kind = model::SourceKind::kAgent,
                         .host = "here",
                         .started_ns = kDay - 60 * kSecond,
                         .ended_ns = kDay + 600 * kSecond},
                        {.source = {8, 2},
                         .kind = model::SourceKind::kAgent,
                         .host = "here",
                         .started_ns = kDay + 3'000 * kSecond,
                         .ended_ns = kDay + 4'000 * kSecond}});
  EXPECT_EQ(observed_s(), 600 + 600);
}

TEST_F(ObserveTest, PackedKernelsCountAsTheirRows) {
  std::vector<model::Kernel> rows;
  const model::KernelPack gemm = PackAt(kDay, 40);
  const model::KernelPack softmax = PackAt(kDay, 30, "softmax", 5'000'000);
  for (const model::KernelPack& pack : {gemm, softmax})
    for (const int64_t offset_ns : pack.offsets_ns)
      rows.push_back(KernelAt(kDay + offset_ns, 1'000, pack.name, kGpu1));
  Add(model::kKernels, rows);
  Add(model::kKernelPacks, {gemm, softmax});
  const auto observed = Observed();
  EXPECT_EQ(observed[0].kernels, 70u);
  EXPECT_EQ(observed[0].fingerprint, observed[1].fingerprint);
  EXPECT_EQ(observed[0].rows, observed[1].rows);
  const auto half = Observed({.from_ns = kDay + 500 * kMs, .to_ns = kDay + kSecond});
  EXPECT_EQ(half[0].kernels, 35u) << "only those in the range";
  EXPECT_EQ(half[0].fingerprint, half[1].fingerprint);
}

TEST_F(ObserveTest, WorkBelongsToTheRangeThatItRunsIn) {
  Add(model::kKernels, {KernelAt(kDay - 10 * kSecond, 20 * kSecond)});
  Add(model::kKernelPacks, {PackAt(kDay, 10, "late", 900 * kMs)});
  const auto kernels = [&](int64_t from_ns, int64_t to_ns) {
    const auto observed = Observed({.from_ns = kDay + from_ns, .to_ns = kDay + to_ns});
    EXPECT_EQ(observed[0].is_busy, observed[0].kernels > 0);
    return observed[0].kernels;
  };
  EXPECT_EQ(kernels(0, 1), 1u) << "runs already";
  EXPECT_EQ(kernels(0, kSecond), 11u);
  EXPECT_EQ(kernels(-20 * kSecond, -10 * kSecond), 0u) << "starts later";
  EXPECT_EQ(kernels(10 * kSecond, 20 * kSecond), 0u) << "has ended";
  EXPECT_EQ(kernels(-10 * kSecond, 0), 1u);
}

TEST_F(ObserveTest, APackOfTheSecondWhoseKernelsAreOutsideIsNoWork) {
  Add(model::kKernelPacks, {PackAt(kDay, 10, "late", 900 * kMs)});
  EXPECT_FALSE(Observed({.from_ns = kDay, .to_ns = kDay + 800 * kMs})[0].is_busy);
}

TEST_F(ObserveTest, MuchWorkIsSampled) {
  std::vector<model::KernelPack> packs;
  for (int64_t second = 0; second < 600; ++second) {
    packs.push_back(PackAt(kDay + second * kSecond, 100, second < 300 ? "gemm" : "softmax"));
    packs.push_back(PackAt(kDay + second * kSecond, 100, second < 300 ? "norm" : "topk", 400));
  }
  Add(model::kKernelPacks, packs);
  const SampleSize size{.operations = 2'000, .windows = 20};
  const auto sampled = Observed({}, size);
  EXPECT_NEAR(static_cast<double>(sampled[0].kernels), 2'000, 100);
  EXPECT_EQ(sampled, Observed({}, size)) << "the same again";
  const auto all = Observed({}, {.operations = 120'000});
  EXPECT_EQ(all[0].kernels, 120'000u);
  EXPECT_GT(Score(sampled[0].fingerprint, all[0].fingerprint),
            0.98 * kFingerprintLength * kFingerprintLength);
  // gemm, norm, topk and softmax take a quarter of the time each.
  const Row& types = sampled[0].rows[GroupNamed("kernel_types")];
  for (const size_t bin : {4, 6, 9, 7}) EXPECT_NEAR(types[bin], 255 / 4.0, 8) << bin;
  EXPECT_FALSE(sampled[1].is_busy);
}

TEST_F(ObserveTest, TheWindowsOfAGpuAreReadTogether) {
  std::vector<model::KernelPack> packs;
  std::vector<model::Kernel> kernels;
  for (int64_t second = 0; second < 100; ++second) {
    packs.push_back(PackAt(kDay + second * kSecond, 50));
    for (int64_t i = 0; i < 20; ++i)
      kernels.push_back(KernelAt(kDay + second * kSecond + i * 50 * kMs, 1'000, "softmax", kGpu1));
  }
  Add(model::kKernelPacks, packs);
  Add(model::kKernels, kernels);
  CountingStore counting(*store_);
  const SampleSize size{.operations = 500, .windows = 50};
  const auto observed = Observe(counting, {}, size);
  ASSERT_TRUE(observed.has_value()) << observed.error().message;
  EXPECT_EQ(observed->gpus, Observed({}, size));
  for (const Observation& gpu : observed->gpus) EXPECT_NEAR(static_cast<double>(gpu.kernels), 500, 30);
  EXPECT_LE(counting.statements(), 20) << "not one for each of 100 windows";
}

TEST_F(ObserveTest, WindowsWithTooMuchForOneStatementAreReadInParts) {
  std::vector<model::KernelPack> packs;
  for (int64_t second = 0; second < 10; ++second)
    packs.push_back(PackAt(kDay + second * kSecond, 100'000, second < 5 ? "gemm" : "softmax"));
  Add(model::kKernelPacks, packs);
  const auto observed = Observed({}, {.operations = 2'000, .windows = 20});
  EXPECT_NEAR(static_cast<double>(observed[0].kernels), 2'000, 40);
  const Row& types = observed[0].rows[GroupNamed("kernel_types")];
  for (const size_t bin : {4, 7}) EXPECT_NEAR(types[bin], 255 / 2.0, 8) << bin;
}

TEST_F(ObserveTest, WorkInAFewSecondsOfADayIsFound) {
  Add(model::kKernelPacks, {PackAt(kDay + 40'000 * kSecond, 3'000), PackAt(kDay + 80'000 * kSecond, 9'000)});
  for (const int64_t operations : {100, 1'000, 100'000}) {
    const auto observed = Observed({.from_ns = kDay, .to_ns = kDay + 86'400 * kSecond},
                                   {.operations = operations, .windows = 10});
    EXPECT_TRUE(observed[0].is_busy) << operations;
    EXPECT_GE(observed[0].kernels, static_cast<uint64_t>(std::min<int64_t>(operations / 2, 12'000)));
  }
}

TEST_F(ObserveTest, KernelsThatAllDifferAreSampledLikeOthers) {
  std::vector<model::KernelPack> packs;
  for (int64_t second = 0; second < 4; ++second)
    for (int64_t i = 0; i < 2'000; ++i) {
      packs.push_back(PackAt(kDay + second * kSecond, 1, fmt::format("kernel_{}", i), i * 500'000));
      packs.back().offsets_ns[0] = (i * 7'919 % 2'000) * 500'000;  // not in the order of rows
      packs.back().end_ns = packs.back().start_ns + packs.back().offsets_ns[0] + 1'000;
    }
  Add(model::kKernelPacks, packs);
  EXPECT_NEAR(static_cast<double>(Observed({}, {.operations = 500, .windows = 10})[0].kernels), 500, 30);
}

TEST_F(ObserveTest, PackedAndOtherKernelsAreInOrder) {
  const model::KernelPack gemm = PackAt(kDay, 4, "gemm");  // at 0, 250, 500 and 750 ms
  Add(model::kKernelPacks, {gemm});
  Add(model::kKernels,
      {KernelAt(kDay + 300 * kMs, 1'000, "softmax"), KernelAt(kDay + 800 * kMs, 1'000, "topk")});
  FingerprintBuilder builder;
  for (const char* const name : {"gemm", "gemm", "softmax", "gemm", "gemm", "topk"})
    builder.Add(1, name, 1'000);
  EXPECT_EQ(Observed()[0].fingerprint, builder.Build());
}

TEST_F(ObserveTest, AFileThatCountsFalselyIsReadToABound) {
  model::KernelPack more = PackAt(kDay, 5'000);
  more.count = 1;
  Add(model::kKernelPacks, {more});
  EXPECT_EQ(Observed({}, {.operations = 100, .windows = 10})[0].kernels, 400u) << "four times as much";
  model::KernelPack none = PackAt(kDay + 5 * kSecond, 0);
  none.count = std::numeric_limits<int64_t>::max();
  none.end_ns = none.start_ns + 1;
  Add(model::kKernelPacks, {none, none});
  EXPECT_LE(Observed({}, {.operations = 100, .windows = 10})[0].kernels, 400u);
}

TEST_F(ObserveTest, TimesThatAFileMadeUpAreNoWork) {
  constexpr int64_t kEndOfTime = std::numeric_limits<int64_t>::max();
  Add(model::kKernels, {KernelAt(-5, 100), KernelAt(kDay, -100), KernelAt(kDay, 0),
                        KernelAt(kEndOfTime - 10, 9), KernelAt(0, kEndOfTime)});
  const auto observed = Observed();
  EXPECT_EQ(observed[0].kernels, 2u);
  EXPECT_THAT(Observed({.from_ns = std::numeric_limits<int64_t>::min(), .to_ns = 0})[0].kernels, 0u);
}

TEST_F(ObserveTest, CountersAreReadWhereAllThreeAre) {
  const auto reading = [](int64_t time_ns, model::Metric metric, double value, Id128 device = kGpu0) {
    return model::MetricValue{.time_ns = time_ns,
                              .source = kSource,
                              .device = device,
                              .metric = std::string(model::InfoOf(metric).name),
                              .value = value};
  };
  using model::Metric;
  Add(model::kMetrics,
      {reading(kDay, Metric::kGpuSmActive, 50), reading(kDay, Metric::kGpuTensorActive, 10),
       reading(kDay, Metric::kGpuDramActive, 100), reading(kDay, Metric::kGpuPower, 300),
       reading(kDay + kSecond, Metric::kGpuSmActive, 90), reading(kDay + kSecond, Metric::kGpuDramActive, 90),
       reading(kDay, Metric::kGpuSmActive, 0, kGpu1), reading(kDay, Metric::kGpuTensorActive, 0, kGpu1),
       reading(kDay, Metric::kGpuDramActive, std::numeric_limits<double>::quiet_NaN(), kGpu1)});
  const auto observed = Observed();
  GpuWork work;
  work.activity = {{.sm = 0.5, .tensor = 0.1, .dram = 1}};
  const size_t group = GroupNamed("unit_activity");
  EXPECT_EQ(observed[0].rows[group], Measure(static_cast<uint32_t>(group), work));
  EXPECT_FALSE(observed[0].is_busy) << "no work was seen";
  EXPECT_EQ(observed[1].rows[group][0], 255u);
  EXPECT_EQ(Observed({.from_ns = kDay + 1})[0].rows[group][0], 255u);
}

TEST_F(ObserveTest, ManyReadingsAreSampled) {
  std::vector<model::MetricValue> readings;
  for (int64_t i = 0; i < 20'000; ++i)
    for (const auto metric :
         {model::Metric::kGpuSmActive, model::Metric::kGpuTensorActive, model::Metric::kGpuDramActive})
      readings.push_back({.time_ns = kDay + i * kSecond,
                          .source = kSource,
                          .device = kGpu0,
                          .metric = std::string(model::InfoOf(metric).name),
                          .value = i < 5'000 ? 97.0 : 2.0});
  Add(model::kMetrics, readings);
  ObservationBuilder all;
  const auto sample = ReadActivity(*store_, {0, std::numeric_limits<int64_t>::max()});
  ASSERT_TRUE(sample.has_value()) << sample.error().message;
  for (const GpuWork::Activity& reading : sample->at(kGpu0)) all.AddActivity(reading);
  const Row row = all.Build("", "").rows[GroupNamed("unit_activity")];
  EXPECT_NEAR(row[20], 255 / 3.0 / 4, 4) << "a quarter of the SMs' readings are in the highest bin";
  EXPECT_NEAR(row[1], 255 / 4.0, 4);
}

TEST_F(ObserveTest, MigInstancesStandForTheirGpu) {
  Add(model::kDevices,
      {{.device = {7, 0}, .ordinal = 0, .uuid = "MIG-a", .name = "NVIDIA X MIG 1g", .parent = kGpu0},
       {.device = {7, 1}, .ordinal = 0, .uuid = "MIG-b", .name = "NVIDIA X MIG 1g", .parent = kGpu0}});
  Add(model::kKernels, {KernelAt(kDay, 10, "gemm", {7, 1})});
  const auto observed = Observed();
  std::vector<std::string> uuids;
  for (const Observation& each : observed) uuids.push_back(each.gpu_uuid);
  EXPECT_THAT(uuids, ElementsAre("MIG-a", "MIG-b", "GPU-1"));
  EXPECT_FALSE(observed[0].is_busy);
  EXPECT_TRUE(observed[1].is_busy);
}

TEST_F(ObserveTest, AGpuKnownFromItsWorkAloneHasItsId) {
  const Id128 unlisted{0xabc, 0xdef};
  Add(model::kKernels, {KernelAt(kDay, 10, "gemm", unlisted)});
  const auto observed = Observed();
  ASSERT_THAT(observed, SizeIs(3));
  EXPECT_EQ(observed[2].gpu_uuid, unlisted.ToHex());
  EXPECT_EQ(observed[2].gpu_name, "");
}

TEST_F(ObserveTest, AnApplicationIsOfAllItsGpus) {
  Add(model::kKernels, {KernelAt(kDay, 10, "gemm"), KernelAt(kDay + 20, 10, "softmax"),
                        KernelAt(kDay + 15, 10, "conv", kGpu1), KernelAt(kDay + 30, 10, "pool", kGpu1)});
  const auto fingerprint = FingerprintOf(*store_, {});
  ASSERT_TRUE(fingerprint.has_value()) << fingerprint.error().message;
  FingerprintBuilder builder;
  builder.Add(0, "gemm", 10);
  builder.Add(1, "conv", 10);
  builder.Add(0, "softmax", 10);
  builder.Add(1, "pool", 10);
  EXPECT_EQ(*fingerprint, builder.Build());
}

}  // namespace
}  // namespace gpusonde::fleet
