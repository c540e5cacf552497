// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "analyze/detail/path_walk.h"
#include "analyze/detail/spans.h"
#include "analyze/timeline/launch_join.h"

namespace gpusonde::analyze {
namespace {

using importers::Span;

constexpr size_t kMaxRanks = 64;
constexpr size_t kMaxEvents = 500'000;  // of a step, and as many spans: 32 and 24 MB
constexpr size_t kMaxSlow = 3;

// A step whose path is looked for.
struct Step {
  int64_t process = 0;
  CriticalPath path;
  std::optional<LaunchedRecord> from;  // the first work of the next step; of the last step, its last to end
  bool is_last = false;
  PathEvents events;
  bool too_large = false;

  bool Overlaps(int64_t start_ns, int64_t end_ns) const {
    return end_ns >= path.begin_ns && start_ns <= path.end_ns;
  }
};

// The typical and the slow steps of a rank that launched work.
void AddSteps(const RankResult& rank, std::vector<Step>& steps) {
  const std::vector<StepTimes>& all = rank.steps.steps;
  std::vector<size_t> order;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].gpu_ns > 0) order.push_back(i);
  if (order.empty()) return;
  const size_t last = order.back();
  std::ranges::stable_sort(order, {}, [&all](size_t i) { return all[i].step_ns; });
  const auto add = [&](size_t i, bool slow) {
    steps.push_back({.process = rank.key.process,
                     .path = {.rank = rank.key,
                              .number = static_cast<int64_t>(i),
                              .slow = slow,
                              .begin_ns = all[i].gpu_begin_ns,
                              .end_ns = all[i].gpu_begin_ns + all[i].gpu_ns,
                              .parts = {},
                              .communication = {}},
                     .from = std::nullopt,
                     .is_last = i == last,
                     .events = {}});
  };
  add(order[(order.size() - 1) / 2], false);
  size_t slow = 0;
  for (const SlowStep& one : rank.steps.slow)
    if (all[one.number].gpu_ns > 0 && slow++ < kMaxSlow) add(one.number, true);
}

void AddWork(const LaunchedRecord& record, const std::vector<Step*>& steps) {
  for (Step* const step : steps) {
    if (!step->Overlaps(record.gpu.start_ns, record.gpu.end_ns)) continue;
    step->too_large |= step->events.gpu.size() == kMaxEvents;
    if (step->too_large) continue;
    step->events.gpu.push_back(record);
    const bool ends = step->is_last ? record.gpu.end_ns == step->path.end_ns
                                    : record.gpu.start_ns == step->path.end_ns && record.has_call != 0;
    if (ends && (!step->from.has_value() || ByStart()(record, *step->from))) step->from = record;
  }
}

Status ReadWork(const DetailState& trace, std::vector<Step>& steps) {
  const RankTable& ranks = trace.state().ranks();
  std::map<RankKey, std::vector<Step*>> of_rank;
  for (Step& step : steps) of_rank[step.path.rank].push_back(&step);
  std::vector<const std::vector<Step*>*> by_number;
  for (const RankKey& key : ranks.ranks())
    by_number.push_back(of_rank.contains(key) ? &of_rank.at(key) : nullptr);
  for (size_t process = 0; process < trace.state().processes().size(); ++process) {
    const int64_t owner = ranks.processes()[process];
    if (std::ranges::none_of(steps, [owner](const Step& step) { return step.process == owner; })) continue;
    LaunchJoin joined(trace.state().processes()[process], /*gpu_ahead_ns=*/0);
    LaunchedRecord record;
    while (joined.Next(record))
      if (const std::vector<Step*>* const of = by_number[record.gpu.rank]) AddWork(record, *of);
    TRY(joined.status());
  }
  return {};
}

Status ReadSpans(const DetailState& trace, std::vector<Step>& steps) {
  std::map<int64_t, std::vector<Step*>> of_process;
  for (Step& step : steps) of_process[step.process].push_back(&step);
  Merged<Span, ByNesting> spans(trace.spans().runs());
  while (const Span* const span = spans.Next()) {
    // Modules surround operators, and the ranges of steps everything.
    if (span->kind == importers::SpanKind::kPython || trace.IsProfilerStep(span->name)) continue;
    const auto found = of_process.find(span->process);
    if (found == of_process.end()) continue;
    for (Step* const step : found->second) {
      if (!step->Overlaps(span->start_ns, span->end_ns)) continue;
      step->too_large |= step->events.spans.size() == kMaxEvents;
      if (!step->too_large) step->events.spans.push_back(*span);
    }
  }
  return spans.status();
}

}  // namespace

Result<std::vector<CriticalPath>> FindCriticalPaths(const DetailState& trace, const FollowOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<RankResult> ranks, FollowProcesses(trace.state(), 1, options));
  std::vector<Step> steps;
  size_t followed = 0;
  for (const RankResult& rank : ranks)
    if (!rank.steps.steps.empty() && followed++ < kMaxRanks) AddSteps(rank, steps);
  TRY(ReadWork(trace, steps));
  TRY(ReadSpans(trace, steps));
  const NameTable& names = trace.state().names();
  const auto name_of = [&names](uint32_t name) { return names[names.Canonical(name)]; };
  const PathNames path_names{
      .of_work =
          [&](const GpuRecord& record) {
            return importers::IsNamed(record.work) ? name_of(record.name) : NameOfTransfer(record);
          },
      .of_span = name_of,
      .is_communication =
          [&](uint32_t name) { return !options.communication.LibraryOf(name_of(name)).empty(); }};
  std::vector<CriticalPath> paths;
  for (Step& step : steps) {
    if (step.too_large || !step.from.has_value()) continue;
    WalkPath(std::exchange(step.events, {}), *step.from, step.is_last, path_names, step.path);
    paths.push_back(std::move(step.path));
  }
  return paths;
}

}  // namespace gpusonde::analyze
