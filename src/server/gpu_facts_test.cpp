// SPDX-License-Identifier: Apache-2.0
#include "server/gpu_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/api.h"
#include "server/testing/fake_data.h"

namespace gpusonde::server {
namespace {

using nlohmann::json;

constexpr Id128 kBusy{8, 8};

// Of the API's answer `summary`, which is made from the facts.
class GpuFactsTest : public testing::Test {
 protected:
  json Summary() {
    const HttpResponse response = ApiHandler(data_, {.mode = "view"})({.path = "/api/v1/summary"});
    EXPECT_EQ(response.status, 200) << *response.body;
    return json::parse(*response.body)["gpu"];
  }

  FakeData data_;
};

TEST_F(GpuFactsTest, HaveTheGpuUseAndItsReason) {
  EXPECT_EQ(Summary(), nullptr) << "no device did anything";
  data_.overview = store::Overview{.samples = 5};
  data_.devices = {
      {.device = {.device = kBusy}, .kernels = 3, .busy_ns = 600, .observed_ns = 1000, .partial_ns = 50},
      {.device = {.device = {1, 1}}, .kernels = 9, .busy_ns = 0, .observed_ns = 1000},
      {.device = {.device = {1, 2}, .parent = Id128{1, 1}}}};
  model::Profile time;
  time.functions = {{.name = "void gemm<float>(int)"}, {.name = "forward", .file = "/app/train.py"}};
  time.locations = {{.kind = model::FrameKind::kGpu, .lines = {{0, 0}}},
                    {.kind = model::FrameKind::kPython, .lines = {{1, 88}}}};
  time.stacks = {{0, 1}};
  time.samples = {{.stack = 0, .count = 3, .weight_ns = 600}};
  data_.gpu_profile = time;
  model::Profile cpu = time;
  cpu.functions = {{.name = "inflate"}, {.name = "load_batch", .file = "/app/train.py"}};
  cpu.samples = {{.stack = 0, .count = 1, .weight_ns = 300}};
  data_.profile = cpu;
  const json gpu = Summary();
  EXPECT_EQ(gpu["devices"], 1) << "an unused device doesn't count";
  EXPECT_EQ(gpu["busy_ns"], 600);
  EXPECT_EQ(gpu["observed_ns"], 1000);
  EXPECT_EQ(gpu["partial_ns"], 50);
  EXPECT_EQ(gpu["busy"], "work on 1 of 2 GPUs; 100 % gemm<float> ← train.py:88 forward")
      << "a GPU and its MIG instance aren't two";
  EXPECT_EQ(gpu["idle"], "100 % of the CPU time during that was in train.py:88 load_batch → inflate");
  EXPECT_EQ(gpu["idle_cause"], "cpu");
  EXPECT_TRUE(data_.selection.while_gpu_idle) << "waits aren't read when the CPU time explains";
}

TEST_F(GpuFactsTest, OfATraceHaveWhatLaunchThreadsDid) {
  data_.overview = store::Overview{};
  data_.gpu_profile = model::Profile{};
  data_.devices = {{.device = {.device = kBusy}, .busy_ns = 6, .observed_ns = 9, .streams = {}}};
  data_.launch_threads = {{"aten::to", "cudaMemcpyAsync", 3}};
  const json gpu = Summary();
  EXPECT_EQ(gpu["idle_cause"], "launch_threads");
  EXPECT_EQ(gpu["launch_threads_in"],
            json({{{"name", "aten::to"}, {"detail", "cudaMemcpyAsync"}, {"time_ns", 3}}}));
}

TEST_F(GpuFactsTest, HaveWhatTheSmsOfTheBusyDevicesDid) {
  store::GpuDevice other{.device = {9, 9}};
  data_.overview = store::Overview{};
  data_.gpu_profile = model::Profile{};
  data_.devices = {{.device = {.device = kBusy}, .busy_ns = 6, .observed_ns = 9, .streams = {}},
                   {.device = other}};
  data_.metric_means = {{kBusy, model::Metric::kGpuSmActive, 41},
                        {other.device, model::Metric::kGpuSmActive, 1},
                        {kBusy, model::Metric::kGpuTensorActive, 12}};
  const json gpu = Summary();
  EXPECT_EQ(gpu["sm_active"], 41.0);
  EXPECT_EQ(gpu["tensor_active"], 12.0);
  EXPECT_THAT(gpu["busy"].get<std::string>(),
              testing::StartsWith("work on 1 of 2 GPUs; SM activity 41 %, tensor pipe 12 %; "));
}

}  // namespace
}  // namespace gpusonde::server
