// SPDX-License-Identifier: Apache-2.0
#include "analyze/advice/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

// Each rule with a report that triggers it, and with one that nearly does.
namespace gpusonde::analyze {
namespace {

constexpr int64_t kMs = 1'000'000;

// Two ranks with a span of 1 s each in one trace, both busy all the time.
Report Busy() {
  Report report;
  report.traces.push_back({.path = "a.json", .format = "kineto-json"});
  for (int64_t rank = 0; rank < 2; ++rank)
    report.ranks.push_back({.rank = rank,
                            .first_ns = 5'000 * kMs,
                            .span_ns = 1'000 * kMs,
                            .busy_ns = 1'000 * kMs,
                            .compute_ns = 1'000 * kMs});
  return report;
}

std::vector<std::string_view> RulesOf(const std::vector<AdviceLine>& advice) {
  std::vector<std::string_view> rules;
  for (const AdviceLine& line : advice) rules.push_back(line.rule);
  return rules;
}

using Rules = std::vector<std::string_view>;

TEST(Advice, ABusyGpuNeedsNone) {
  EXPECT_EQ(RulesOf(Advise(Busy())), Rules());
  EXPECT_EQ(RulesOf(Advise(Report())), Rules());
}

TEST(Advice, LaunchBoundFromATenthInShortGapsOn) {
  Report report = Busy();
  report.kernels = {{.name = "large", .count = 10, .p50_ns = kMs},
                    {.name = "often", .count = 90, .p50_ns = kMs}};
  report.ranks[1].host_gaps = {.short_ns = 100 * kMs - 1, .short_count = 1'000};
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
  report.ranks[1].host_gaps.short_ns = 100 * kMs;
  report.ranks[1].busy_windows_ns.assign(128, 1'000 * kMs / 128);
  report.ranks[1].busy_windows_ns[64] = 0;
  report.ranks[1].busy_windows_ns[32] = 1;
  // The idlest window has a stall, which is another problem.
  report.ranks[1].host_gaps.longest = {{501 * kMs, 504 * kMs}};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"launch_bound"});
  EXPECT_EQ(advice[0].rank, 1);
  EXPECT_EQ(advice[0].ranks, 1);
  EXPECT_EQ(advice[0].gain_ns, 100 * kMs);
  EXPECT_EQ(advice[0].span_ns, 1'000 * kMs);
  EXPECT_EQ(advice[0].names, (std::vector<std::string>{"often", "large"}));
  EXPECT_NE(advice[0].finding.find("1000 gaps under 1 ms, 100.000 ms in total, 100 µs each"),
            std::string::npos);
  ASSERT_EQ(advice[0].places.size(), 1u);
  EXPECT_EQ(advice[0].places[0].begin_ns, 5'250 * kMs);
}

// A report in which the first rank copies from pinned memory for some time while no kernel runs.
Report Copying(int64_t alone_ns) {
  Report report = Busy();
  report.ranks[0].compute_ns = 1'000 * kMs - alone_ns;
  report.ranks[0].transfer_ns = 500 * kMs;
  report.ranks[0].transfer_overlap_ns = 500 * kMs - alone_ns;
  report.memcpys = {{.kind = "htod",
                     .source = "pinned",
                     .target = "device",
                     .bytes = 10'000'000'000,
                     .durations = {.count = 20, .total_ns = 500 * kMs}}};
  return report;
}

TEST(Advice, ExposedCopiesFromATenthWithoutAKernelOn) {
  EXPECT_EQ(RulesOf(Advise(Copying(100 * kMs - 1))), Rules());
  const std::vector<AdviceLine> advice = Advise(Copying(100 * kMs));
  ASSERT_EQ(RulesOf(advice), Rules{"exposed_copies"});
  EXPECT_EQ(advice[0].rank, 0);
  EXPECT_EQ(advice[0].gain_ns, 100 * kMs);
  EXPECT_EQ(advice[0].finding, "100.000 ms of 500.000 ms of copies and sets had no concurrent kernel");
  EXPECT_EQ(advice[0].names,
            std::vector<std::string>{"htod pinned -> device (20 copies of 10.000 GB at 20.00 GB/s)"});
  Report unknown_sizes = Copying(100 * kMs);
  unknown_sizes.memcpys[0].bytes = 0;
  EXPECT_EQ(Advise(unknown_sizes)[0].names, std::vector<std::string>{"htod pinned -> device (20 copies)"});
}

TEST(Advice, CopiesBesideAGraphAreNotExposed) {
  Report report = Copying(100 * kMs);
  report.ranks[0].graph_ns = 1;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, CopiesOfPageableMemoryAreAdvisedOfOnce) {
  Report report = Copying(100 * kMs);
  report.memcpys[0].source = "pageable";
  EXPECT_EQ(RulesOf(Advise(report)), Rules{"pageable_memory"});
}

TEST(Advice, LoaderBoundFromATwentiethWithinItsWaitsOn) {
  Report report = Busy();
  report.ranks[1].loader = {.count = 4, .total_ns = 90 * kMs, .idle_ns = 50 * kMs - 1};
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
  report.ranks[1].loader.idle_ns = 50 * kMs;
  report.ranks[1].loader.longest = {{100 * kMs, 130 * kMs}, {200 * kMs, 220 * kMs}};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"loader_bound"});
  EXPECT_EQ(advice[0].rank, 1);
  EXPECT_EQ(advice[0].gain_ns, 50 * kMs);
  EXPECT_NE(
      advice[0].finding.find(
          "idle for 50.000 ms while the host waited for its data loader (4 waits of 90.000 ms together)"),
      std::string::npos);
  ASSERT_EQ(advice[0].places.size(), 2u);
  EXPECT_EQ(advice[0].places[0].begin_ns, 5'100 * kMs);
}

TEST(Advice, FullQueueFromATenthInBlockedLaunchesOnIfTheGpuIsBusy) {
  Report report = Busy();
  report.ranks[1].full_queue = {.count = 90, .blocked_ns = 100 * kMs - 1};
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
  report.ranks[1].full_queue = {.count = 90, .blocked_ns = 100 * kMs, .longest = {{100 * kMs, 130 * kMs}}};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"full_queue"});
  EXPECT_EQ(advice[0].rank, 1);
  EXPECT_EQ(advice[0].gain_ns, 0);
  EXPECT_NE(advice[0].finding.find("90 launch calls took 100.000 ms"), std::string::npos);
  ASSERT_EQ(advice[0].places.size(), 1u);
  EXPECT_EQ(advice[0].places[0].begin_ns, 5'100 * kMs);
  // A GPU that is idle although launches wait has another problem.
  report.ranks[1].idle_ns = 201 * kMs;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, ClockThrottlingIfTheClockIsLowInMostSlowTimeAndSeldomElse) {
  Report report = Busy();
  report.clocks = {{.rank = 1,
                    .samples = 1'000,
                    .usual_mhz = 1'980,
                    .lowest_mhz = 990,
                    .slow_ns = 40 * kMs,
                    .slow_low_ns = 20 * kMs,
                    .other_low_ns = 200 * kMs,
                    .lost_ns = 10 * kMs,
                    .throttle_reasons = 0x4,
                    .longest = {{100 * kMs, 110 * kMs}}}};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"clock_throttling"});
  EXPECT_EQ(advice[0].rank, 1);
  EXPECT_EQ(advice[0].gain_ns, 10 * kMs);
  EXPECT_NE(advice[0].finding.find("in 50.0 % of the device's time of slow steps"), std::string::npos);
  EXPECT_NE(advice[0].finding.find("990 MHz where lowest, while it is 1980 MHz usually"), std::string::npos);
  EXPECT_NE(advice[0].finding.find("reasons: power cap"), std::string::npos);
  ASSERT_EQ(advice[0].places.size(), 1u);
  EXPECT_EQ(advice[0].places[0].begin_ns, 5'100 * kMs);
  // Not if it explains less than half, is as low elsewhere, or costs little.
  Report less = report;
  less.clocks[0].slow_low_ns = 20 * kMs - 1;
  EXPECT_EQ(RulesOf(Advise(less)), Rules());
  Report elsewhere = report;
  elsewhere.clocks[0].other_low_ns = 250 * kMs;
  EXPECT_EQ(RulesOf(Advise(elsewhere)), Rules());
  Report cheap = report;
  cheap.clocks[0].lost_ns = 10 * kMs - 1;
  EXPECT_EQ(RulesOf(Advise(cheap)), Rules());
}

TEST(Advice, SlowPeriodsSayWhatTheClockWas) {
  Report report = Busy();
  report.windows = {
      {.rank = 1, .begin_ns = 0, .end_ns = 100 * kMs, .kernels = 10, .kernel_ns = 60 * kMs, .ratio = 2}};
  ASSERT_EQ(RulesOf(Advise(report)), Rules{"slow_periods"});
  EXPECT_NE(Advise(report)[0].action.find("the report doesn't have them"), std::string::npos);
  report.clocks = {{.rank = 1, .usual_mhz = 1'980, .slow_ns = 100 * kMs}};
  EXPECT_NE(Advise(report)[0].action.find("The clock wasn't low"), std::string::npos);
  report.clocks[0].slow_low_ns = 60 * kMs;
  EXPECT_NE(Advise(report)[0].action.find("see clock_throttling"), std::string::npos);
}

TEST(Advice, HostStallsFromATwentiethInLongGapsOn) {
  Report report = Busy();
  report.ranks[0].host_gaps = {.long_ns = 50 * kMs - 1, .long_count = 3};
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
  report.ranks[0].host_gaps.long_ns = 50 * kMs;
  report.ranks[0].host_gaps.longest = {
      {100 * kMs, 130 * kMs}, {200 * kMs, 215 * kMs}, {300 * kMs, 303 * kMs}, {400 * kMs, 402 * kMs}};
  report.ranks[1].host_gaps = {.long_ns = 60 * kMs, .long_count = 2};
  std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"host_stalls"});
  EXPECT_EQ(advice[0].rank, 1);
  EXPECT_EQ(advice[0].ranks, 2);
  report.ranks[1].host_gaps.long_ns = 0;
  advice = Advise(report);
  EXPECT_EQ(advice[0].gain_ns, 50 * kMs);
  ASSERT_EQ(advice[0].places.size(), 3u);
  EXPECT_EQ(advice[0].places[0].begin_ns, 5'100 * kMs);
  EXPECT_EQ(advice[0].places[0].end_ns, 5'130 * kMs);
}

TEST(Advice, SmallKernelsIfTheyAreMostLaunchesAndGapsCost) {
  Report report = Busy();
  report.kernels = {{.name = "large", .count = 25, .p50_ns = 10'000},
                    {.name = "small", .count = 75, .p50_ns = 9'999}};
  report.ranks[0].idle.back_to_back_ns = 40 * kMs;  // of which small kernels have three quarters
  std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"small_kernels"});
  EXPECT_EQ(advice[0].gain_ns, 30 * kMs);
  EXPECT_EQ(advice[0].names, std::vector<std::string>{"small"});
  report.ranks[0].idle.back_to_back_ns = 40 * kMs - 2;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
  report.ranks[0].idle.back_to_back_ns = 100 * kMs;
  report.kernels[0].count = 76;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

// Copies of a megabyte each.
TransferLine Copies(std::string_view kind, std::string_view source, std::string_view target, int64_t count,
                    int64_t total_ns) {
  return {.kind = kind,
          .source = source,
          .target = target,
          .bytes = count * 1'000'000,
          .durations = {.count = count, .total_ns = total_ns}};
}

TEST(Advice, PageableMemoryGainsUpToTheRateOfPinnedCopies) {
  Report report = Busy();
  report.memcpys = {Copies("htod", "pageable", "device", 100, 60 * kMs),
                    Copies("htod", "pinned", "device", 30, 6 * kMs)};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"pageable_memory"});
  EXPECT_EQ(advice[0].rank, std::nullopt);
  EXPECT_EQ(advice[0].gain_ns, 20 * kMs);  // 60 − 100 · 0.2 ms, over two ranks
  EXPECT_NE(advice[0].gain_basis.find("at the rate of"), std::string::npos);
  report.memcpys[0].durations.total_ns = 60 * kMs - 1;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, PageableMemoryGainsUpToTheTimeOfCopiesAloneWithoutAComparison) {
  Report report = Busy();
  report.memcpys = {Copies("dtoh", "device", "pageable", 100, 60 * kMs),
                    Copies("dtoh", "device", "pinned", 29, 6 * kMs),  // too few
                    Copies("htod", "pinned", "device", 300, 6 * kMs)};
  EXPECT_EQ(RulesOf(Advise(report)), Rules());  // kernels ran beside all of them
  report.ranks[0].transfer_ns = 50 * kMs;
  report.ranks[0].transfer_overlap_ns = 40 * kMs;
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"pageable_memory"});
  EXPECT_EQ(advice[0].gain_ns, 5 * kMs);
  report.memcpys[0].target = "pinned";
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, SynchronousCopiesByTheCallsThatBlock) {
  Report report = Busy();
  report.ranks[0].idle.host_ns = 30 * kMs;
  report.ranks[0].host_gaps.short_ns = 30 * kMs;
  report.api_calls = {{.name = "cudaMemcpyAsync", .count = 900, .total_ns = 900 * kMs},
                      {.name = "cudaMemcpy_v3020", .count = 10, .total_ns = 60 * kMs},
                      {.name = "cuMemcpyDtoH_v2", .count = 10, .total_ns = 40 * kMs}};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"synchronous_copies"});
  EXPECT_EQ(advice[0].gain_ns, 15 * kMs);  // what the GPUs waited, over two ranks
  EXPECT_EQ(advice[0].names, (std::vector<std::string>{"cudaMemcpy_v3020", "cuMemcpyDtoH_v2"}));
  EXPECT_NE(advice[0].finding.find("20 calls of copies that block the host took 100.000 ms"),
            std::string::npos);
  report.api_calls[1].total_ns -= 1;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, SynchronousSetsWhereTheGpuWaitedMeanwhile) {
  Report report = Busy();
  report.ranks[1].idle.host_ns = 30 * kMs;
  report.ranks[1].transfer_ns = 25 * kMs;
  report.ranks[1].transfer_overlap_ns = 5 * kMs;
  report.ranks[1].blocking_sets = {.count = 7, .call_ns = 80 * kMs, .set_ns = 20 * kMs};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"synchronous_sets"});
  EXPECT_EQ(advice[0].rank, 1);
  EXPECT_EQ(advice[0].gain_ns, 50 * kMs);
  EXPECT_EQ(
      advice[0].finding,
      "7 sets of pinned or managed memory blocked the host for 80.000 ms; the GPU took 20.000 ms for them");
  report.ranks[1].transfer_ns -= 1;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, ExposedCommunicationWithoutWaitsForOthers) {
  Report report = Busy();
  report.ranks[0].comm_ns = 300 * kMs;
  report.ranks[0].exposed_comm_ns = 250 * kMs;
  report.communication = {{.name = "ncclDevKernel_AllReduce"}};
  report.collectives = {{.rank = 0, .waited_ns = 150 * kMs}};
  std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"exposed_communication"});
  EXPECT_EQ(advice[0].gain_ns, 100 * kMs);
  EXPECT_EQ(advice[0].names, std::vector<std::string>{"ncclDevKernel_AllReduce"});
  EXPECT_NE(advice[0].finding.find("150.000 ms of it was waiting for other ranks"), std::string::npos);
  report.collectives[0].waited_ns += 1;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, AStragglerThatDelaysByAHundredth) {
  Report report = Busy();
  report.collectives = {{.rank = 0},
                        {.rank = 1, .matched = 8, .last = 7, .delayed_ns = 10 * kMs, .straggler = true}};
  std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"straggler"});
  EXPECT_EQ(advice[0].rank, 1);
  EXPECT_EQ(advice[0].gain_ns, 10 * kMs);
  report.collectives[1].delayed_ns -= 1;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
  report.collectives[1] = {.rank = 1, .delayed_ns = 500 * kMs, .straggler = false};
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, ASlowRankThatLosesAHundredth) {
  Report report = Busy();
  report.slow_ranks = {{.rank = 1, .kernels = 100, .ratio = 1.25, .low = 1.2, .high = 1.3}};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"slow_rank"});
  EXPECT_EQ(advice[0].gain_ns, 200 * kMs);
  report.ranks[1].compute_ns = 49 * kMs;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, ASlowKernelOfARankIsNotASlowGpu) {
  Report report = Busy();
  report.slow_ranks = {
      {.rank = 1, .ratio = 1.25, .mostly = {.name = "k", .ratio = 3, .excess_ns = 190 * kMs}}};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"slow_rank"});
  EXPECT_EQ(advice[0].gain_ns, 200 * kMs);
  EXPECT_EQ(advice[0].names, std::vector<std::string>{"k"});
  EXPECT_EQ(advice[0].action.find("clocks"), std::string::npos);
}

TEST(Advice, AProgramThatLaunchesGraphsIsNotToldToUseThem) {
  Report report = Busy();
  report.ranks[0].host_gaps = {.short_ns = 100 * kMs, .short_count = 10};
  ASSERT_EQ(RulesOf(Advise(report)), Rules{"launch_bound"});
  EXPECT_NE(Advise(report)[0].action.find("sooner: CUDA graphs"), std::string::npos);
  report.api_calls.push_back({.name = "cudaGraphLaunch_v10000"});
  EXPECT_EQ(Advise(report)[0].action.find("sooner: CUDA graphs"), std::string::npos);
}

TEST(Advice, SlowPeriodsThatCostAHundredth) {
  Report report = Busy();
  report.windows = {
      {.rank = 0, .begin_ns = 10 * kMs, .end_ns = 20 * kMs, .kernel_ns = 10 * kMs, .ratio = 1.25},
      {.rank = 0, .begin_ns = 90 * kMs, .end_ns = 140 * kMs, .kernel_ns = 40 * kMs, .ratio = 1.25}};
  const std::vector<AdviceLine> advice = Advise(report);
  ASSERT_EQ(RulesOf(advice), Rules{"slow_periods"});
  EXPECT_EQ(advice[0].gain_ns, 10 * kMs);
  ASSERT_EQ(advice[0].places.size(), 2u);
  EXPECT_EQ(advice[0].places[0].begin_ns, 5'090 * kMs);  // the costlier one first
  report.windows[1].kernel_ns = 39 * kMs;
  EXPECT_EQ(RulesOf(Advise(report)), Rules());
}

TEST(Advice, TheLargestGainIsFirst) {
  Report report = Busy();
  report.ranks[0].host_gaps = {
      .short_ns = 100 * kMs, .short_count = 10, .long_ns = 300 * kMs, .long_count = 3};
  report.slow_ranks = {{.rank = 1, .ratio = 1.25}};
  EXPECT_EQ(RulesOf(Advise(report)), (Rules{"host_stalls", "slow_rank", "launch_bound"}));
}

}  // namespace
}  // namespace gpusonde::analyze
