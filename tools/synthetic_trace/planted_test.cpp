// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "analyze/report_builder.h"
#include "workload.h"

// Effects planted in a synthetic job are found, and nothing else.
namespace gpusonde::synthetic {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kKernels = 60'000;

analyze::Report ReportOf(const Plan& plan) {
  analyze::TraceState state;
  for (const std::string& name : KernelNames()) state.Name(name);
  const uint32_t launch = state.Name("cudaLaunchKernel");
  Workload workload(plan);
  for (int64_t i = 0; i < workload.steps(); ++i) {
    const std::vector<Step> steps = workload.Next();
    for (size_t rank = 0; rank < steps.size(); ++rank) {
      const auto process = static_cast<int64_t>(rank) + 100;
      std::vector<importers::GpuEvent> events;
      for (const Event& event : steps[rank].events) {
        importers::GpuEvent made{.start_ns = event.start_ns,
                                 .end_ns = event.end_ns,
                                 .process = process,
                                 .correlation = event.correlation,
                                 .bytes = event.bytes,
                                 .device = static_cast<int32_t>(rank),
                                 .stream = static_cast<uint32_t>(event.stream)};
        if (event.kernel >= 0) {
          made.name = static_cast<uint32_t>(event.kernel);
          made.shape = importers::ShapeOf({event.grid, 1, 1, 256, 1, 1});
        } else {
          made.work = importers::GpuWork::kMemcpy;
          made.copy = importers::CopyKind::kHostToDevice;
          made.source = importers::MemoryKind::kPinned;
          made.target = importers::MemoryKind::kDevice;
        }
        events.push_back(made);
      }
      std::vector<importers::ApiCall> calls;
      for (const Call& call : steps[rank].calls)
        calls.push_back({.start_ns = call.start_ns,
                         .end_ns = call.end_ns,
                         .process = process,
                         .correlation = call.correlation,
                         .name = launch});
      state.Gpu(events);
      state.Api(calls);
    }
  }
  EXPECT_TRUE(state.Finish().has_value());
  analyze::ReportBuilder builder;
  builder.Add("planted", {}, state, analyze::FollowProcesses(state, 1).value());
  return std::move(builder).Finish().value();
}

Plan PlanOf(uint64_t seed) { return {.ranks = kRanks, .kernels = kKernels, .seed = seed}; }

std::vector<int64_t> Stragglers(const analyze::Report& report) {
  std::vector<int64_t> ranks;
  for (const analyze::CollectiveLine& line : report.collectives)
    if (line.straggler) ranks.push_back(line.rank);
  return ranks;
}

size_t FindingsOf(const analyze::Report& report) {
  return report.windows.size() + report.copy_effects.size() + report.slow_ranks.size() +
         Stragglers(report).size();
}

// At a false discovery rate of 5 % for each of four kinds of findings, fewer than one run in five has a false
// finding; findings must also make a difference of 5 %.
TEST(Planted, NothingIsFoundWhereNothingIs) {
  int runs_with_findings = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    runs_with_findings += FindingsOf(ReportOf(PlanOf(seed))) > 0 ? 1 : 0;
  EXPECT_LE(runs_with_findings, 2);
}

TEST(Planted, ACopyEffectIsFoundForEveryKernelAndOfTheRightSize) {
  Plan plan = PlanOf(1);
  plan.copy_effect = 1.3;
  const analyze::Report report = ReportOf(plan);
  int any = 0;
  for (const analyze::CopyEffectLine& line : report.copy_effects) {
    EXPECT_FALSE(line.after) << line.name;
    EXPECT_NEAR(line.ratio, 1.3, 0.05) << line.name;
    EXPECT_GT(line.excess_ns, 0);
    any += line.any_copy ? 1 : 0;
    if (line.any_copy) continue;
    EXPECT_EQ(line.copy_kind, "htod");
    EXPECT_EQ(line.memory, "pinned");
    EXPECT_EQ(line.size, "64k_to_1m");
  }
  EXPECT_EQ(any, 20);
  EXPECT_EQ(FindingsOf(report), report.copy_effects.size());
}

TEST(Planted, AWindowIsFoundWhereItWas) {
  Plan plan = PlanOf(2);
  plan.slow_window_rank = 2;
  plan.window_factor = 1.25;
  const analyze::Report report = ReportOf(plan);
  ASSERT_EQ(report.windows.size(), 1u);
  const analyze::WindowLine& line = report.windows[0];
  const analyze::RankLine& rank = report.ranks[2];
  EXPECT_EQ(line.rank, 2);
  // Between 40 % and 50 % of the steps, which are longer there; windows are a 128th.
  EXPECT_NEAR(static_cast<double>(line.begin_ns) / static_cast<double>(rank.span_ns), 0.39, 0.02);
  EXPECT_NEAR(static_cast<double>(line.end_ns) / static_cast<double>(rank.span_ns), 0.51, 0.02);
  EXPECT_NEAR(line.ratio, 1.22, 0.05);
  EXPECT_TRUE(report.copy_effects.empty());
  EXPECT_TRUE(report.slow_ranks.empty());
}

TEST(Planted, ASlowRankIsFoundAndEveryoneWaitsForIt) {
  Plan plan = PlanOf(3);
  plan.slow_rank = 1;
  plan.slow_factor = 1.15;
  const analyze::Report report = ReportOf(plan);
  ASSERT_EQ(report.slow_ranks.size(), 1u);
  EXPECT_EQ(report.slow_ranks[0].rank, 1);
  EXPECT_NEAR(report.slow_ranks[0].ratio, 1.15, 0.01);
  EXPECT_EQ(Stragglers(report), std::vector<int64_t>{1});
  EXPECT_TRUE(report.windows.empty());
  EXPECT_TRUE(report.copy_effects.empty());
}

TEST(Planted, ALateHostIsAStragglerThoughItsKernelsAreNotSlow) {
  Plan plan = PlanOf(4);
  plan.late_rank = 3;
  plan.late_ns = 400'000;
  const analyze::Report report = ReportOf(plan);
  EXPECT_EQ(Stragglers(report), std::vector<int64_t>{3});
  EXPECT_EQ(FindingsOf(report), 1u);
  EXPECT_GT(report.ranks[3].idle.host_ns, 2 * report.ranks[0].idle.host_ns);
}

// One trace per rank, each with a larger clock offset.
analyze::Report ReportOfTraces(const Plan& plan, analyze::Alignment alignment) {
  analyze::ReportBuilder builder(alignment);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    analyze::TraceState state;
    for (const std::string& name : KernelNames()) state.Name(name);
    Workload workload(plan);
    for (int64_t i = 0; i < workload.steps(); ++i) {
      const auto step = workload.Next();
      for (const Event& event : step[static_cast<size_t>(rank)].events) {
        if (event.kernel < 0) continue;
        const importers::GpuEvent made{.start_ns = event.start_ns,
                                       .end_ns = event.end_ns,
                                       .stream = static_cast<uint32_t>(event.stream),
                                       .name = static_cast<uint32_t>(event.kernel)};
        state.Gpu(std::span(&made, 1));
      }
    }
    EXPECT_TRUE(state.Finish().has_value());
    importers::TraceInfo info;
    info.rank = rank;
    info.epoch_offset_ns = 1'700'000'000'000'000'000 + rank * plan.clock_offset_ns;
    builder.Add("rank" + std::to_string(rank), info, state, analyze::FollowProcesses(state, 1).value());
  }
  return std::move(builder).Finish().value();
}

TEST(Planted, ClocksAreSetByCollectives) {
  Plan plan = PlanOf(6);
  const analyze::Report truth = ReportOfTraces(plan, analyze::Alignment::kNone);
  plan.clock_offset_ns = 7'654'321;
  const analyze::Report off = ReportOfTraces(plan, analyze::Alignment::kNone);
  const analyze::Report aligned = ReportOfTraces(plan, analyze::Alignment::kCollectives);
  ASSERT_EQ(aligned.collectives.size(), static_cast<size_t>(kRanks));
  for (size_t rank = 0; rank < kRanks; ++rank) {
    const auto planted_ns = static_cast<int64_t>(rank) * plan.clock_offset_ns;
    EXPECT_EQ(aligned.collectives[rank].clock_offset_ns, planted_ns);
    EXPECT_EQ(aligned.collectives[rank].clock_residual_ns, 0);
    EXPECT_EQ(aligned.ranks[rank].begin_ns, truth.ranks[rank].begin_ns);
    if (rank > 0) {
      EXPECT_GT(off.ranks[rank].begin_ns, truth.ranks[rank].begin_ns);
    }
  }
  EXPECT_TRUE(aligned.notes.empty());
}

TEST(Planted, AKernelThatVariesIsFirstWithItsOutliers) {
  Plan plan = PlanOf(5);
  plan.variable_factor = 3;
  const analyze::Report report = ReportOf(plan);
  const auto first = std::ranges::find(report.variability, false, &analyze::VariabilityLine::communication);
  EXPECT_EQ(first->name, KernelNames()[kVariableKernel]);
  EXPECT_GT(first->outliers, 0);
  EXPECT_EQ(first->slowest.size(), 16u);
  EXPECT_GT(first->explained.shape, 0.05);
  EXPECT_EQ(FindingsOf(report), 0u);
}

}  // namespace
}  // namespace gpusonde::synthetic
