// SPDX-License-Identifier: Apache-2.0
#include "server/compare_selections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "compare/run.h"
#include "importers/sonde/selected.h"
#include "model/schema.h"
#include "model/tables/devices.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernels.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "server/api.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::server {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr Id128 kFirstRank{5, 1}, kSecondRank{5, 2}, kComparedGpu{6, 0};
constexpr int64_t kBefore = 10 * kNanosPerSecond, kAfter = 20 * kNanosPerSecond;

// Ten seconds before and ten after, in which two ranks run kernels.
class CompareSelections : public store::MemoryStoreTest {
 protected:
  using Query = std::vector<std::pair<std::string, std::string>>;

  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kSources, {{.source = {9, 9},
                           .host = "here",
                           .cpus = 2,
                           .sampling_hz = 20,
                           .started_ns = kBefore,
                           .ended_ns = kAfter + 10 * kNanosPerSecond}});
    Add(model::kProcesses, {{.process = kFirstRank, .pid = 100, .name = "rank0"},
                            {.process = kSecondRank, .pid = 101, .name = "rank1"}});
    Add(model::kDevices, {{.device = kComparedGpu, .ordinal = 0, .uuid = "GPU-0", .name = "NVIDIA X"}});
  }

  // A gemm and a relu every 5 ms of ten seconds, whose durations vary by 2 %.
  void Work(Id128 process, int64_t from_ns, double gemm_ns) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal(1, 0.02);
    std::vector<model::Kernel> kernels;
    for (int64_t i = 0; i < 2'000; ++i) {
      const int64_t start_ns = from_ns + i * 5'000'000;
      const auto add = [&](const char* name, int64_t at_ns, double duration_ns) {
        kernels.push_back({.process = process,
                           .device = kComparedGpu,
                           .session = 1,
                           .correlation = 2 * i + at_ns % 2,
                           .stream = 7,
                           .start_ns = at_ns,
                           .end_ns = at_ns + std::llround(duration_ns * normal(random)),
                           .name = name,
                           .grid_x = 64,
                           .grid_y = 1,
                           .grid_z = 1,
                           .block_x = 128,
                           .block_y = 1,
                           .block_z = 1});
      };
      add("_Z4gemmv", start_ns, gemm_ns);
      add("_Z4reluv", start_ns + 3'000'001, 200'000);
    }
    Add(model::kKernels, kernels);
  }

  HttpResponse Ask(const Query& query) {
    const auto data = ReadingFrom(*store_);
    return ApiHandler(*data, {.mode = "view"})({.path = "/api/v1/compare", .query = query});
  }
  json Compare(const Query& query) {
    const HttpResponse response = Ask(query);
    EXPECT_EQ(response.status, 200) << *response.body;
    return json::parse(*response.body);
  }
  std::string ErrorOf(const Query& query) {
    const HttpResponse response = Ask(query);
    EXPECT_EQ(response.status, 400) << *response.body;
    return json::parse(*response.body)["error"]["message"];
  }
  static Query Times(const Query& more = {}) {
    Query query = {{"type", "gpu"},
                   {"base_from_us", "10000000"},
                   {"base_to_us", "20000000"},
                   {"from_us", "20000000"},
                   {"to_us", "30000000"}};
    query.insert(query.end(), more.begin(), more.end());
    return query;
  }
  static const json& KernelOf(const json& compared, const std::string& name) {
    for (const json& kernel : compared["gpu"]["kernels"])
      if (kernel["name"].get<std::string>().starts_with(name)) return kernel;
    static const json none;
    return none;
  }
};

TEST_F(CompareSelections, AKernelThatIsSlowerLaterIsFoundAndTheOtherIsNot) {
  Work(kFirstRank, kBefore, 1'000'000);
  Work(kFirstRank, kAfter, 1'100'000);
  const json compared = Compare(Times());
  EXPECT_EQ(compared["a"], json({{"from_us", 10'000'000}, {"to_us", 20'000'000}}));
  EXPECT_EQ(compared["by_work"], true);
  EXPECT_EQ(compared["why_not"], "");
  const json& gemm = KernelOf(compared, "gemm");
  EXPECT_EQ(gemm["change"], "slower") << compared["gpu"].dump();
  EXPECT_EQ(gemm["count_a"], 2000);
  EXPECT_NEAR(gemm["duration"]["ratio"].get<double>(), 1.1, 0.01);
  EXPECT_EQ(KernelOf(compared, "relu")["change"], "none");
  EXPECT_THAT(compared["sentences"].dump(), HasSubstr("gemm"));
  // The flame graph has the same kernels, and its root both sides.
  const json& nodes = compared["stacks"]["nodes"];
  EXPECT_EQ(nodes["parent"][0], -1);
  EXPECT_NEAR(nodes["a_ns"][0].get<double>(), 2000 * 1.2e6, 1e7);
  EXPECT_NEAR(nodes["b_ns"][0].get<double>(), 2000 * 1.3e6, 1e7);
  EXPECT_THAT(compared["stacks"]["strings"].dump(), HasSubstr("gemm"));
  EXPECT_EQ(compared["stacks"]["omitted"], 0);
}

TEST_F(CompareSelections, EqualTimesHaveNoChange) {
  Work(kFirstRank, kBefore, 1'000'000);
  Work(kFirstRank, kAfter, 1'000'000);
  const json compared = Compare(Times());
  ASSERT_EQ(compared["gpu"]["kernels"].size(), 2u);
  for (const json& kernel : compared["gpu"]["kernels"]) EXPECT_EQ(kernel["change"], "none");
}

TEST_F(CompareSelections, TwoProcessesAtTheSameTimeAreCompared) {
  Work(kFirstRank, kBefore, 1'000'000);
  Work(kSecondRank, kBefore, 1'200'000);
  const json compared =
      Compare({{"type", "gpu"}, {"base_process", kFirstRank.ToHex()}, {"process", kSecondRank.ToHex()}});
  EXPECT_EQ(KernelOf(compared, "gemm")["change"], "slower");
  EXPECT_EQ(KernelOf(compared, "gemm")["count_b"], 2000);
  // One of them with all, which are on two ranks.
  const json with_all = Compare({{"type", "gpu"}, {"base_process", "all"}, {"process", kFirstRank.ToHex()}});
  EXPECT_EQ(with_all["gpu"]["a"]["ranks"], 2);
  EXPECT_EQ(with_all["gpu"]["b"]["ranks"], 1);
}

TEST_F(CompareSelections, WithoutGpuWorkOnASideCpuTimeIsComparedForEqualTimes) {
  Work(kFirstRank, kBefore, 1'000'000);
  Add(model::kSamples, {{.time_ns = kBefore + 1, .process = kFirstRank, .tid = 1, .weight_ns = 600},
                        {.time_ns = kAfter + 1, .process = kFirstRank, .tid = 1, .weight_ns = 400}});
  const json compared = Compare({{"type", "cpu"},
                                 {"base_from_us", "10000000"},
                                 {"base_to_us", "20000000"},
                                 {"from_us", "20000000"},
                                 {"to_us", "25000000"}});
  EXPECT_EQ(compared["gpu"], nullptr);
  EXPECT_EQ(compared["why_not"], "B has no GPU work");
  EXPECT_EQ(compared["by_work"], false);
  EXPECT_EQ(compared["stacks"]["nodes"]["a_ns"][0], 600);
  EXPECT_EQ(compared["stacks"]["nodes"]["b_ns"][0], 800) << "of half the time";
}

TEST_F(CompareSelections, ComparingASideWithItselfIsRefused) {
  EXPECT_THAT(ErrorOf({{"type", "gpu"}}), HasSubstr("A and B are the same"));
  EXPECT_THAT(ErrorOf({{"base_from_us", "5"}, {"base_to_us", "5"}}),
              HasSubstr("'base_to_us' (5) must be after 'base_from_us' (5)"));
  EXPECT_THAT(ErrorOf({{"base_process", "x"}}), HasSubstr("'base_process' takes"));
}

TEST_F(CompareSelections, ASideWithTooMuchWorkIsRefusedWithItsNumber) {
  Work(kFirstRank, kBefore, 1'000'000);
  const auto trace = importers::sonde::OpenSelected(*store_, {}, 3'999);
  ASSERT_FALSE(trace.has_value());
  EXPECT_THAT(trace.error().message, HasSubstr("4000 kernels, copies and sets; at most 3999"));
  EXPECT_TRUE(importers::sonde::OpenSelected(*store_, {}, 4'000).has_value());
}

}  // namespace
}  // namespace gpusonde::server
