// SPDX-License-Identifier: Apache-2.0
#include "exporters/gpu_account.h"

#include <gtest/gtest.h>

namespace gpusonde::exporters {
namespace {

using model::Profile;

// Stacks of one Python function each, at line 10 × (i + 1) of app.py, which called `called[i]`; each is
// sampled once per thread.
Profile Lines(std::vector<std::string> called, std::vector<Profile::Thread> threads,
              std::vector<int64_t> weights_ns) {
  Profile profile;
  profile.threads = std::move(threads);
  for (int32_t i = 0; i < static_cast<int32_t>(called.size()); ++i) {
    profile.functions.push_back({.name = "f" + std::to_string(i), .file = "/src/app.py"});
    profile.functions.push_back({.name = called[static_cast<size_t>(i)]});
    profile.locations.push_back({.kind = model::FrameKind::kPython, .lines = {{2 * i, 10 * (i + 1)}}});
    profile.locations.push_back({.lines = {{2 * i + 1, 0}}});
    profile.stacks.push_back({2 * i + 1, 2 * i});
    profile.samples.push_back(
        {.stack = i, .thread = i, .count = 1, .weight_ns = weights_ns[static_cast<size_t>(i)]});
  }
  return profile;
}

Profile::Thread Of(uint64_t process, int32_t pid, int32_t parent_pid, int32_t tid = 0) {
  return {{process, 0}, pid, tid == 0 ? pid : tid, "python3", "python3", "", parent_pid};
}

// Half busy for a second; the trainer is pid 5.
GpuFacts GpuOnly() {
  GpuFacts facts{.busy_ns = 500'000'000, .observed_ns = 1'000'000'000, .kernels = 2};
  facts.time = Lines({"void at::gemm<float, 4>(int)", "relu"}, {Of(1, 5, 1), Of(1, 5, 1)}, {300, 100});
  return facts;
}

TEST(GpuAccount, KernelsHaveShortNamesAndTheLineThatLaunchedThem) {
  const GpuAccount account = AccountOf(GpuOnly());
  EXPECT_EQ(account.busy, "75 % gemm<float, 4> ← app.py:10 f0, 25 % relu ← app.py:20 f1");
  EXPECT_EQ(account.hottest.front().name, "void at::gemm<float, 4>(int)");
}

TEST(GpuAccount, WithoutSamplesOfCpusItSaysWhatLaunchThreadsDid) {
  GpuFacts facts = GpuOnly();
  EXPECT_EQ(AccountOf(facts).idle,
            "select a shorter time to see what the threads that launch GPU work did meanwhile");
  facts.launch_threads.emplace();
  EXPECT_EQ(AccountOf(facts).idle, "CPUs were not sampled, so the reason is unknown");
  facts.launch_threads = {{"nccl:all_to_all", "cudaLaunchKernel", 150'000'000},
                          {"", "cudaMemcpy", 125'000'000},
                          {"nccl:all_to_all", "", 100'000'000},
                          {"", "", 25'000'000}};
  const GpuAccount account = AccountOf(facts);
  EXPECT_EQ(
      account.idle,
      "of that time, the threads that launch GPU work spent 50 % in nccl:all_to_all → cudaLaunchKernel, "
      "25 % in cudaMemcpy");
  EXPECT_EQ(account.cause, GpuAccount::IdleCause::kLaunchThreads);
  EXPECT_EQ(account.launch_threads_in.back().name, "no range or call");
  facts.launch_threads->resize(1);
  facts.launch_threads->front().time_ns = 49'000'000;
  EXPECT_EQ(AccountOf(facts).idle, "CPUs were not sampled, so the reason is unknown")
      << "too few launches are known";
}

TEST(GpuAccount, WhatTheSmsDidComesBeforeTheKernelsWhereItWasRead) {
  GpuFacts facts = GpuOnly();
  EXPECT_EQ(ActivityOf(facts), "");
  facts.sm_active = 41.2;
  EXPECT_EQ(ActivityOf(facts), "SM activity 41 %");
  facts.tensor_active = 12.4;
  EXPECT_EQ(
      AccountOf(facts).busy,
      "SM activity 41 %, tensor pipe 12 %; 75 % gemm<float, 4> ← app.py:10 f0, 25 % relu ← app.py:20 f1");
}

TEST(GpuAccount, GpusWithoutWorkAreSaid) {
  GpuFacts facts = GpuOnly();
  facts.devices = {{"NVIDIA H100", 0, false}};
  EXPECT_EQ(ShareOfDevices(facts), "");
  facts.idle_devices = 7;
  facts.sm_active = 41.2;
  EXPECT_THAT(AccountOf(facts).busy, ::testing::StartsWith("work on 1 of 8 GPUs; SM activity 41 %; 75 % "));
}

TEST(GpuAccount, NamesOfKernelsLoseTheirNamespaces) {
  GpuFacts facts = GpuOnly();
  for (model::Profile::Function& function : facts.time.functions) {
    if (function.name == "relu")
      function.name = "void at::native::(anonymous namespace)::softmax<float, 4>(float*)";
    if (function.name.contains("gemm"))
      function.name = "void at::native::<unnamed>::vectorized_elementwise<4, (int)2>(int)";
  }
  EXPECT_EQ(AccountOf(facts).busy,
            "75 % vectorized_elementwise<4, 2> ← app.py:10 f0, 25 % softmax<float, 4> ← app.py:20 f1");
}

TEST(GpuAccount, KernelsOfOneLineNameItOnce) {
  GpuFacts facts = GpuOnly();
  // Both kernels were launched by the first function.
  facts.time.stacks = {{1, 0}, {3, 0}};
  EXPECT_EQ(AccountOf(facts).busy, "75 % gemm<float, 4>, 25 % relu ← app.py:10 f0");
}

TEST(GpuAccount, AKernelThatSeveralLinesLaunchNamesTheFirstAndSaysSo) {
  GpuFacts facts = GpuOnly();
  // The other function launched the first kernel, too, for 100 of 400 ns.
  facts.time.stacks[1].front() = facts.time.stacks[0].front();
  const GpuAccount account = AccountOf(facts);
  EXPECT_EQ(account.busy, "100 % gemm<float, 4> ← app.py:10 f0 and others");
  EXPECT_EQ(account.hottest.front().detail, "app.py:10 f0");
  EXPECT_EQ(account.hottest.front().detail_ns, 300);
}

TEST(GpuAccount, OnlyTheProgramsThatUseTheGpuAndTheirChildrenExplainItsIdleTime) {
  GpuFacts facts = GpuOnly();
  // A compiler, a loader that the trainer started, and a process that the loader started.
  facts.cpu_while_idle = Lines({"parse", "inflate", "crc"}, {Of(9, 900, 1), Of(2, 6, 5), Of(3, 7, 6)},
                               {900'000'000, 60'000'000, 20'000'000});
  const GpuAccount account = AccountOf(facts);
  EXPECT_EQ(account.idle_cpu_ns, 80'000'000);
  EXPECT_EQ(account.idle, "75 % of the CPU time during that was in app.py:20 f1 → inflate");
  EXPECT_EQ(account.cause, GpuAccount::IdleCause::kCpu);
  EXPECT_FALSE(NeedsWaits(facts));
}

TEST(GpuAccount, WithoutCpuTimeTheLaunchThreadsWaitsExplainIt) {
  GpuFacts facts = GpuOnly();
  facts.cpu_while_idle = Lines({"poll"}, {Of(1, 5, 1)}, {10'000'000});
  EXPECT_TRUE(NeedsWaits(facts)) << "10 ms of 500 ms explain nothing";
  facts.waits = Lines({"recv", "[waits for a GPU]", "futex"}, {Of(1, 5, 1), Of(1, 5, 1), Of(1, 5, 1, 77)},
                      {300'000'000, 500'000'000, 900'000'000});
  const GpuAccount account = AccountOf(facts);
  EXPECT_EQ(account.cause, GpuAccount::IdleCause::kWaits);
  EXPECT_EQ(account.waited_ns, 300'000'000) << "neither waits for the GPU, nor those of other threads";
  EXPECT_EQ(account.idle,
            "the threads that launch GPU work waited, 100 % of the time in app.py:10 f0 → recv");
}

// Lines at which a thread lost its CPU say nothing, and there are many.
TEST(GpuAccount, AWaitForACpuIsNoWaitInALine) {
  GpuFacts facts = GpuOnly();
  facts.waits = Lines({"recv", "[waits for a CPU]", "[waits for a CPU]"},
                      {Of(1, 5, 1), Of(1, 5, 1), Of(1, 5, 1)}, {300'000'000, 250'000'000, 250'000'000});
  const GpuAccount account = AccountOf(facts);
  EXPECT_EQ(account.idle, "the threads that launch GPU work waited, 62 % of the time for a CPU");
  EXPECT_EQ(account.waiting_in.front().name, "[waits for a CPU]");
  EXPECT_EQ(account.waiting_in.front().detail, "");
}

TEST(GpuAccount, AGpuThatIsHardlyIdleNeedsNoReason) {
  GpuFacts facts = GpuOnly();
  facts.busy_ns = 999'000'000;
  EXPECT_EQ(AccountOf(facts).idle, "");
  EXPECT_FALSE(NeedsWaits(facts));
}

}  // namespace
}  // namespace gpusonde::exporters
