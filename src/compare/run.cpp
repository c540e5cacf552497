// SPDX-License-Identifier: Apache-2.0
#include "compare/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "analyze/lines.h"
#include "analyze/scale/trace_part.h"
#include "analyze/stats/log_moments.h"
#include "base/order_statistics.h"
#include "base/saturated.h"
#include "compare/phases.h"

namespace gpusonde::compare {
namespace {

constexpr std::array kAllTimes = {&Times::span_ns,      &Times::compute_ns, &Times::communication_ns,
                                  &Times::copy_ns,      &Times::graph_ns,   &Times::idle_host_ns,
                                  &Times::idle_other_ns};

constexpr int64_t kFirstStart = 946'684'800'000'000'000;  // the year 2000

constexpr double kNaturalUnit = std::numbers::ln2 / analyze::kLogUnits;

std::string_view NameOf(const analyze::NameTable& names, uint32_t id) { return names[names.Canonical(id)]; }

void AddTo(Amount& amount, const analyze::Durations& durations, int64_t bytes = 0) {
  amount.Merge({.count = durations.moments.count(), .total_ns = durations.moments.total(), .bytes = bytes});
}

void AddNamed(const analyze::NameTable& names, std::span<const analyze::Durations> durations,
              std::map<std::string, Amount>& amounts) {
  for (uint32_t id = 0; id < durations.size(); ++id)
    if (durations[id].moments.count() > 0) AddTo(amounts[std::string(NameOf(names, id))], durations[id]);
}

KernelGroup GroupOf(const analyze::Stratum& stratum) {
  // Batches of equal sums say that values don't vary, but they are only as precise as the clock.
  const double variance = stratum.logs.count < 2
                              ? 0
                              : std::max(stratum.log_error.variance,
                                         stratum.logs.Variance() / static_cast<double>(stratum.logs.count));
  return {
      .count = stratum.sum.count,
      .total_ns = static_cast<double>(stratum.sum.total_ns),
      .log_mean = stratum.logs.Mean() * kNaturalUnit,
      .error = {.variance = variance * kNaturalUnit * kNaturalUnit, .freedom = stratum.log_error.freedom}};
}

// Of the work per window of time: the time that its kernels would have taken if they had been as fast as on
// average. Kernels count by their time: many small ones that take much longer cost little beside large ones.
analyze::MeanError ProgressOf(const analyze::KernelResult& kernels) {
  std::vector<int64_t> work;
  for (const analyze::Window& window : kernels.windows) {
    const double faster = window.taken_ns > 0 ? window.expected_ns / window.taken_ns : 0;
    work.push_back(std::llround(static_cast<double>(window.kernel_ns) * faster));
  }
  return analyze::RelativeErrorOfMean(work);
}

class RunBuilder {
 public:
  explicit RunBuilder(const analyze::CommunicationKernels& communication) : communication_(communication) {}

  void Add(const analyze::TracePart& part) {
    const analyze::TraceState& state = part.state;
    for (uint32_t id = 0; id < state.kernels().size(); ++id)
      if (state.kernels()[id].moments.count() > 0) AddTo(KernelOf(state, id).amount, state.kernels()[id]);
    AddNamed(state.names(), state.graphs(), run_.graphs);
    AddNamed(state.names(), state.calls(), run_.calls);
    AddPhases(state.steps(), run_.phases);
    run_.all_phases &= state.steps().HasAll();
    for (const auto& [key, transfers] : state.copies())
      AddTo(run_.copies[fmt::format("{} {} -> {}", importers::Name(key.copy), importers::Name(key.source),
                                    importers::Name(key.target))],
            transfers.durations, transfers.bytes);
    for (const analyze::RankResult& rank : part.ranks) AddRank(state, rank);
    AddStart(part.info.epoch_offset_ns, state.totals().on_gpu);
    analyze::Report report;
    report.traces.push_back({.path = part.path, .format = importers::Name(part.info.format)});
    analyze::AddNotes(0, part.info, state, report.notes);
    for (const analyze::Note& note : report.notes)
      run_.notes.push_back(fmt::format("{}: {}", part.path, analyze::SentenceOf(note, report)));
  }

  Run Finish() && {
    const double ranks = std::max<double>(1, static_cast<double>(run_.ranks));
    for (const auto time : kAllTimes) run_.times.*time /= ranks;
    run_.progress.variance /= ranks;
    if (steps_of_ranks_ == run_.ranks) {
      run_.step_ns = median_steps_ns_ / ranks;
      run_.steps = static_cast<double>(steps_) / ranks;
    }
    if (steps_of_ranks_ < run_.ranks || labels_.size() != 1) return std::move(run_);
    run_.step_label = *labels_.begin();
    return std::move(run_);
  }

 private:
  Kernel& KernelOf(const analyze::TraceState& state, uint32_t id) {
    const std::string_view name = NameOf(state.names(), id);
    const auto [place, is_new] = run_.kernels.try_emplace(std::string(name));
    if (is_new) place->second.communication = !communication_.LibraryOf(name).empty();
    return place->second;
  }

  // Traces whose clock doesn't begin with the epoch have no start.
  void AddStart(int64_t epoch_offset_ns, const analyze::Extent& on_gpu) {
    if (on_gpu.IsEmpty()) return;
    const int64_t start_ns = epoch_offset_ns + on_gpu.first_ns;
    if (start_ns >= kFirstStart) run_.start_ns = std::min(run_.start_ns.value_or(start_ns), start_ns);
  }

  void AddSteps(const analyze::RankSteps& steps) {
    if (steps.steps.empty()) return;
    std::vector<int64_t> times;
    for (const analyze::StepTimes& step : steps.steps) times.push_back(step.step_ns);
    median_steps_ns_ += static_cast<double>(MedianOf(std::move(times)));
    ++steps_of_ranks_;
    steps_ += steps.steps.size();
    labels_.insert(steps.label);
  }

  void AddRank(const analyze::TraceState& state, const analyze::RankResult& rank) {
    const analyze::RankTimeline& timeline = rank.timeline;
    const int64_t kernels_ns = timeline.compute_ns() + timeline.comm_ns() - timeline.overlap_ns();
    // What ran in whole graphs is unknown; time in which they ran is theirs.
    const int64_t copies_ns =
        std::max<int64_t>(0, std::min(timeline.transfer_ns() - timeline.transfer_overlap_ns(),
                                      timeline.busy_ns() - kernels_ns - timeline.graph_ns()));
    Times& times = run_.times;
    times.span_ns += static_cast<double>(timeline.span_ns());
    times.compute_ns += static_cast<double>(timeline.compute_ns());
    times.communication_ns += static_cast<double>(timeline.comm_ns() - timeline.overlap_ns());
    times.copy_ns += static_cast<double>(copies_ns);
    times.graph_ns += static_cast<double>(timeline.busy_ns() - kernels_ns - copies_ns);
    times.idle_host_ns += static_cast<double>(timeline.idle().host_ns);
    times.idle_other_ns +=
        static_cast<double>(timeline.span_ns() - timeline.busy_ns() - timeline.idle().host_ns);
    for (const analyze::Stratum& stratum : rank.kernels.strata)
      KernelOf(state, stratum.name).groups[stratum.shape].Merge(GroupOf(stratum));
    for (const auto& [name, result] : rank.kernels.names) {
      analyze::MeanError& launches = KernelOf(state, name).launches;
      if (result.launches.variance >= launches.variance) launches = result.launches;
    }
    AddSteps(rank.steps);
    // Ranks wait for each other, so more ranks don't make the progress better known.
    const analyze::MeanError progress = ProgressOf(rank.kernels);
    run_.progress.variance += progress.variance;
    run_.progress.freedom =
        run_.ranks == 0 ? progress.freedom : std::min(run_.progress.freedom, progress.freedom);
    ++run_.ranks;
  }

  const analyze::CommunicationKernels& communication_;
  Run run_;
  double median_steps_ns_ = 0;
  int64_t steps_of_ranks_ = 0;
  size_t steps_ = 0;
  std::set<std::string> labels_;
};

}  // namespace

void KernelGroup::Merge(const KernelGroup& other) {
  if (count == 0) {
    *this = other;
    return;
  }
  const auto a = static_cast<double>(count), b = static_cast<double>(other.count), all = a + b;
  log_mean = (a * log_mean + b * other.log_mean) / all;
  const bool known = error.freedom > 0 && other.error.freedom > 0;
  error.variance = (a * a * error.variance + b * b * other.error.variance) / (all * all);
  error.freedom = known ? std::min(error.freedom, other.error.freedom) : 0;
  count += other.count;
  total_ns += other.total_ns;
}

void Amount::Merge(const Amount& other) {
  count = AddSaturated(count, other.count);
  total_ns = AddSaturated(total_ns, other.total_ns);
  bytes = AddSaturated(bytes, other.bytes);
}

void Kernel::Merge(const Kernel& other) {
  amount.Merge(other.amount);
  if (other.launches.variance >= launches.variance) launches = other.launches;
  for (const auto& [shape, group] : other.groups) groups[shape].Merge(group);
}

void Run::Merge(const Run& other) {
  paths.insert(paths.end(), other.paths.begin(), other.paths.end());
  notes.insert(notes.end(), other.notes.begin(), other.notes.end());
  runs += other.runs;
  start_ns.reset();
  step_ns.reset();
  steps += other.steps;
  if (step_label != other.step_label) step_label.clear();
  ranks = std::max(ranks, other.ranks);
  for (const auto time : kAllTimes) times.*time += other.times.*time;
  progress.variance += other.progress.variance;
  progress.freedom = std::min(progress.freedom, other.progress.freedom);
  all_phases &= other.all_phases;
  for (const auto named : {&Run::kernels, &Run::phases})
    for (const auto& [name, kernel] : other.*named) {
      const auto [mine, is_new] = (this->*named).try_emplace(name, kernel);
      if (is_new) continue;
      mine->second.Merge(kernel);
      mine->second.runs += kernel.runs;
    }
  for (const auto amounts : {&Run::graphs, &Run::copies, &Run::calls})
    for (const auto& [name, amount] : other.*amounts) (this->*amounts)[name].Merge(amount);
}

void Run::FinishMerging() {
  const auto count = static_cast<double>(runs);
  for (const auto time : kAllTimes) times.*time /= count;
  progress.variance /= count * count;
}

Result<Run> ReadRun(const std::vector<std::string>& paths, const analyze::Options& options) {
  RunBuilder builder(options.communication);
  ASSIGN_OR_RETURN(const analyze::Division division, analyze::Division::Make(paths, 1));
  TRY(analyze::ReadParts(paths, options, division, 0, [&](analyze::TracePart part) { builder.Add(part); }));
  Run run = std::move(builder).Finish();
  run.paths = paths;
  if (run.ranks == 0)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: has no GPU events, so there is nothing to compare", paths.front()));
  return run;
}

Result<Run> ReadRun(importers::Trace& trace, const std::string& name, const analyze::Options& options) {
  RunBuilder builder(options.communication);
  ASSIGN_OR_RETURN(analyze::TracePart part, analyze::ReadOpened(trace, name, options));
  builder.Add(part);
  Run run = std::move(builder).Finish();
  run.paths = {name};
  return run;
}

}  // namespace gpusonde::compare
