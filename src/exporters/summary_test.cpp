// SPDX-License-Identifier: Apache-2.0
#include "exporters/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpusonde::exporters {
namespace {

using testing::HasSubstr;
using testing::Not;

// 30 ms in inflate, 10 ms in main, of one thread.
model::Profile TwoFunctions() {
  model::Profile profile;
  profile.binaries = {{.name = "libz.so.1", .path = "/lib/libz.so.1", .build_id = "ab"}};
  profile.functions = {{.name = "main"}, {.name = "inflate"}};
  profile.locations = {{.kind = model::FrameKind::kNative, .binary = 0, .lines = {{0, 0}}},
                       {.kind = model::FrameKind::kNative, .binary = 0, .lines = {{1, 0}}}};
  profile.stacks = {{0}, {1, 0}};
  profile.threads = {{.process = {1, 1}, .pid = 7, .tid = 8, .process_name = "train", .name = "loader"}};
  profile.samples = {{.stack = 0, .thread = 0, .count = 1, .weight_ns = 10'000'000},
                     {.stack = 1, .thread = 0, .count = 3, .weight_ns = 30'000'000}};
  return profile;
}

SummaryFacts Facts() {
  return {
      .command = "train.py", .path = "run.sonde", .duration_ns = 80'000'000, .cpus = 2, .sampling_hz = 99};
}

TEST(Summarise, SharesAreOfSelfTimeHottestFirst) {
  const std::string text = Summarise(TwoFunctions(), Facts());
  EXPECT_THAT(text, HasSubstr("0.50 of 2 CPUs busy, 0.04 s in 1 process and 1 thread (4 samples)"));
  EXPECT_THAT(text, HasSubstr("75.0 %  inflate  (libz.so.1)"));
  EXPECT_LT(text.find("inflate"), text.find("25.0 %  main"));
  EXPECT_THAT(text, HasSubstr("loader (8) 100.0 %"));
}

TEST(Summarise, NamesNoThreadsWhereOnlyThoseOfProfilersRan) {
  model::Profile profile = TwoFunctions();
  EXPECT_THAT(Summarise(profile, Facts()), HasSubstr("\nthreads   "));
  profile.threads[0].name = "gpusonde";
  EXPECT_THAT(Summarise(profile, Facts()), Not(HasSubstr("\nthreads   ")));
}

TEST(Summarise, ManyThreadsOfOneNameCountTogether) {
  model::Profile profile = TwoFunctions();
  const auto add = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<int32_t>(profile.threads.size());
      profile.threads.push_back({.process = {1, 1}, .pid = 7, .tid = 100 + number, .name = "cc1plus"});
      profile.samples.push_back({.stack = 0, .thread = number, .count = 1, .weight_ns = 10'000'000});
    }
  };
  add(4);
  EXPECT_THAT(Summarise(profile, Facts()),
              HasSubstr("threads   loader (8) 50.0 %, cc1plus (101) 12.5 %, cc1plus (102) 12.5 %"));
  add(2);
  EXPECT_THAT(Summarise(profile, Facts()),
              HasSubstr("threads   cc1plus (6 threads) 60.0 %, loader (8) 40.0 %\n"));
}

TEST(Summarise, HasTenLinesAtMostAndEndsWithTheNextCommand) {
  model::Profile profile = TwoFunctions();
  for (int i = 0; i < 20; ++i) {
    profile.functions.push_back({.name = "f" + std::to_string(i)});
    profile.locations.push_back({.lines = {{i + 2, 0}}});
    profile.stacks.push_back({i + 2});
    profile.samples.push_back({.stack = i + 2, .thread = 0, .count = 1, .weight_ns = 1'000'000});
  }
  SummaryFacts facts = Facts();
  facts.lost = {{"Samples lost because the kernel's buffer was full.", 12}};
  facts.poorer = {{"Frames without a name.", 3}};
  const std::string text = Summarise(profile, facts);
  EXPECT_LE(std::ranges::count(text, '\n'), 10);
  SummaryFacts gpu_facts = facts;
  gpu_facts.gpu.emplace().time = profile;
  EXPECT_LE(std::ranges::count(Summarise(profile, gpu_facts), '\n'), 10);
  EXPECT_THAT(text, HasSubstr("dropped   samples lost because the kernel's buffer was full (12)\n"));
  EXPECT_TRUE(text.ends_with("next      gpusonde view run.sonde\n"));
}

TEST(Summarise, NamesThreeReasonsForMissingDetailAndCountsTheOthers) {
  SummaryFacts facts = Facts();
  facts.poorer = {{"Frames without a name.", 3}, {"GPU kernels b.", 2}, {"Frames c.", 1}};
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr("detail    missing: frames without a name (3); GPU kernels b (2); frames c (1)\n"));
  facts.poorer.insert(facts.poorer.end(), {{"D.", 1}, {"E.", 1}});
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr("frames c (1); and 2 lesser reasons (table drops)\n"));
}

TEST(Summarise, ReasonsAreWholeSentencesWhateverPointsTheyHave) {
  SummaryFacts facts = Facts();
  facts.poorer = {{"Frames that nothing names (Node.js writes a map with --perf-basic-prof).", 7}};
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr(" frames that nothing names (Node.js writes a map with --perf-basic-prof) (7)\n"));
}

TEST(Summarise, LongCommandsLoseTheFoldersOfTheirFiles) {
  SummaryFacts facts = Facts();
  facts.command = "/home/ada/miniconda3/envs/training/bin/python3 /home/ada/project/train.py --seed 1";
  EXPECT_THAT(Summarise(TwoFunctions(), facts), HasSubstr("recorded  python3 train.py --seed 1 for "));
}

TEST(Summarise, ShortRecordingsHaveTheirLengthInMilliseconds) {
  const auto head = [](int64_t duration_ns) {
    SummaryFacts facts = Facts();
    facts.duration_ns = duration_ns;
    return Summarise(TwoFunctions(), facts);
  };
  EXPECT_THAT(head(2'010'000), HasSubstr("recorded  train.py for 2.01 ms at 99 Hz"));
  EXPECT_THAT(head(999'400'000), HasSubstr(" for 999 ms "));
  EXPECT_THAT(head(999'600'000), HasSubstr(" for 1.0 s "));
}

TEST(Summarise, TheNextCommandCanBeCopied) {
  SummaryFacts facts = Facts();
  facts.path = "my run.sonde";
  EXPECT_TRUE(Summarise(TwoFunctions(), facts).ends_with("next      gpusonde view 'my run.sonde'\n"));
}

TEST(Summarise, FramesOfAFileWithoutSymbolsAreOneLine) {
  model::Profile profile = TwoFunctions();
  for (int64_t address : {0x100, 0x200, 0x300}) {
    profile.stacks.push_back({static_cast<int32_t>(profile.locations.size()), 0});
    profile.locations.push_back({.kind = model::FrameKind::kNative, .binary = 0, .address = address});
    profile.samples.push_back({.stack = static_cast<int32_t>(profile.stacks.size()) - 1,
                               .thread = 0,
                               .count = 2,
                               .weight_ns = 20'000'000});
  }
  const std::string text = Summarise(profile, Facts());
  EXPECT_THAT(text, HasSubstr("self      60.0 %  [libz.so.1]\n"));
  EXPECT_THAT(text, Not(HasSubstr("0x")));
}

// Half of the idle time in load_batch (train.py), which calls inflate; no source line is known of the rest.
GpuFacts Gpu() {
  GpuFacts gpu;
  gpu.devices = {{"NVIDIA H100", 0, true}, {"NVIDIA H100", 1, true}};
  gpu.busy_ns = 540'000'000;
  gpu.observed_ns = 1'000'000'000;
  gpu.kernels = 1234;
  gpu.time.functions = {{.name = "gemm"},
                        {.name = "relu"},
                        {.name = "forward", .file = "/app/model.py", .line = 70},
                        {.name = "linear", .file = "/usr/lib/python3/dist-packages/torch/nn.py", .line = 1}};
  gpu.time.locations = {{.lines = {{0, 0}}},
                        {.lines = {{1, 0}}},
                        {.kind = model::FrameKind::kPython, .lines = {{2, 77}}},
                        {.kind = model::FrameKind::kPython, .lines = {{3, 2}}}};
  gpu.time.stacks = {{0, 3, 2}, {1}};  // a library's function lies between the kernel and the program's
  gpu.time.samples = {{.stack = 0, .weight_ns = 750}, {.stack = 1, .weight_ns = 250}};
  gpu.cpu_while_idle = TwoFunctions();
  gpu.cpu_while_idle->functions.push_back({.name = "load_batch", .file = "/app/train.py", .line = 30});
  gpu.cpu_while_idle->locations.push_back({.lines = {{2, 41}}});
  gpu.cpu_while_idle->stacks.push_back({1, 2, 0});
  gpu.cpu_while_idle->samples.push_back({.stack = 2, .thread = 0, .count = 4, .weight_ns = 40'000'000});
  return gpu;
}

TEST(Summarise, ShowsGpuUseCpuTimeWhileIdleAndTheHottestKernels) {
  SummaryFacts facts = Facts();
  facts.gpu = Gpu();
  const std::string text = Summarise(TwoFunctions(), facts);
  EXPECT_THAT(
      text,
      HasSubstr("gpu       busy 54.0 % of 1.0 s on 2 devices: NVIDIA H100 (simulated); kernels 1234\n"));
  facts.gpu->paused_ns = 1'200'000'000;
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr("gpu       busy 54.0 % of 1.0 s (paused for 1.2 s more by the overhead budget of "
                        "`gpusonde up`, or by another profiler) on 2 devices"));
  facts.gpu->paused_ns = 0;
  EXPECT_THAT(text,
              HasSubstr("while idle  50.0 %  train.py:41 load_batch → inflate  (of 0.08 s of CPU time)\n"));
  EXPECT_THAT(text, HasSubstr("gpu time  75.0 %  gemm ← model.py:77 forward\ngpu time  25.0 %  relu\n"));
  facts.gpu->sm_active = 41.2;
  facts.gpu->tensor_active = 12;
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr("; kernels 1234; SM activity 41 %, tensor pipe 12 %\n"));
  facts.gpu->idle_devices = 6;
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr(" on 2 devices: NVIDIA H100 (simulated) (work on 2 of 8 GPUs); kernels 1234; SM"));
  facts.gpu->cpu_while_idle->samples.clear();
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr("while idle  no CPU time and no waits were sampled"));
}

TEST(Summarise, TheWorstIncidentIsShown) {
  SummaryFacts facts = Facts();
  EXPECT_THAT(Summarise(TwoFunctions(), facts), Not(HasSubstr("slow ")));
  facts.incidents = {"Steps slowed 3.1×. CPU contention (0.93)."};
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr("slow      Steps slowed 3.1×. CPU contention (0.93).\n"));
  facts.incidents.emplace_back("Another.");
  facts.gpu = Gpu();
  const std::string text = Summarise(TwoFunctions(), facts);
  EXPECT_THAT(text, HasSubstr("(0.93).  (and 1 more: gpusonde diagnose " + facts.path + ")\n"));
  EXPECT_LE(std::ranges::count(text, '\n'), 10);
}

TEST(Summarise, SaysWhatStepsTakeTheirTimeFor) {
  SummaryFacts facts = Facts();
  facts.gpu = Gpu();
  facts.incidents = {"CPU contention all the time: 40 % of each step."};
  facts.poorer = {{"Frames without a name.", 3}};
  facts.steps = {.process = "train",
                 .count = 3105,
                 .time_ns = 15.6e6,
                 .parts = {{"CPU", 9.36e6}, {"GPU kernels", 6.14e6}, {"Disk", 0.1e6}}};
  std::string text = Summarise(TwoFunctions(), facts);
  EXPECT_THAT(text, HasSubstr("\nsteps     3105 of train: 15.6 ms each usually, 60 % CPU, 39 % GPU kernels\n"
                              "slow      CPU contention all the time: 40 % of each step.\n"));
  EXPECT_LE(std::ranges::count(text, '\n'), 10);
  facts.steps->parts = {{"I/O", 8e6}, {"Own processes", 6e6}};
  EXPECT_THAT(Summarise(TwoFunctions(), facts), HasSubstr(" usually, 51 % I/O, 38 % own processes\n"));
  facts.steps->between_ns = 31.2e6;
  EXPECT_THAT(Summarise(TwoFunctions(), facts),
              HasSubstr(" own processes; waits 31.2 ms before each, as for a request\n"));
  facts.steps->other_loops = 1;
  facts.steps->other_processes = 3;
  text = Summarise(TwoFunctions(), facts);
  EXPECT_THAT(
      text,
      HasSubstr("\nsteps     3105 of train (and those of 1 other loop, 3 other processes): 15.6 ms each"));
}

TEST(Summarise, WithoutSamplesItSaysWhy) { EXPECT_THAT(Summarise({}, Facts()), HasSubstr("no samples")); }

TEST(Summarise, WithoutCpuSamplingItSaysSo) {
  SummaryFacts facts = Facts();
  facts.sampling_hz = 0;
  EXPECT_THAT(Summarise({}, facts),
              testing::AllOf(HasSubstr("cpu       not sampled\n"), Not(HasSubstr("Hz"))));
}

TEST(Summarise, UntrustedNamesCannotControlTheTerminal) {
  model::Profile profile = TwoFunctions();
  profile.functions[1].name = "evil\x1b[2J\n";
  EXPECT_THAT(Summarise(profile, Facts()), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace gpusonde::exporters
