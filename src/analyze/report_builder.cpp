// SPDX-License-Identifier: Apache-2.0
#include "analyze/report_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "analyze/advice/advice.h"
#include "analyze/lines.h"
#include "analyze/rank_names.h"
#include "base/saturated.h"

namespace gpusonde::analyze {
namespace {

// How much of a trace's GPU work starts before the call that launched it, if that is a hundredth or more:
// none does in the real traces that we have. 0 where the difference of the clocks was estimated.
int64_t StartsBeforeLaunch(std::span<const RankResult> ranks) {
  constexpr uint64_t kHundredth = 100;
  uint64_t early = 0, launched = 0;
  for (const RankResult& rank : ranks) {
    const Durations& latency = rank.timeline.launch_latency();
    if (rank.gpu_ahead_ns != 0) return 0;
    if (latency.moments.min() < 0) early += latency.sketch.count() - latency.sketch.CountAbove(0);
    launched += latency.sketch.count();
  }
  return early * kHundredth >= launched ? static_cast<int64_t>(early) : 0;
}

// How many calls of a trace have the numbers of others, if a hundredth or more of what was launched: no call
// does in the real traces that we have.
int64_t SharedNumbers(std::span<const RankResult> ranks) {
  constexpr int64_t kHundredth = 100;
  int64_t shared = 0, launched = 0;
  for (const RankResult& rank : ranks) {
    shared = AddSaturated(shared, rank.shared_numbers);
    launched = AddSaturated(launched, rank.timeline.launch_latency().moments.count());
  }
  return shared >= (launched + kHundredth - 1) / kHundredth ? shared : 0;
}

// The rank that a trace is of, to which its number applies: the only one, or one beside which the others
// hardly did anything, as a process that creates a context on the first GPU, too. Null if there are several.
const RankResult* MainOf(std::span<const RankResult> ranks) {
  constexpr Int128 kHundredth = 100;
  const auto busy_ns = [](const RankResult& rank) { return rank.timeline.busy_ns(); };
  const auto main = std::ranges::max_element(ranks, {}, busy_ns);
  if (main == ranks.end()) return nullptr;
  Int128 others_ns = -busy_ns(*main);
  for (const RankResult& rank : ranks) others_ns += busy_ns(rank);
  return ranks.size() == 1 || others_ns * kHundredth <= busy_ns(*main) ? &*main : nullptr;
}

}  // namespace

void ReportBuilder::Add(const std::string& path, const importers::TraceInfo& info, const TraceState& state,
                        std::vector<RankResult> ranks) {
  const size_t trace = report_.traces.size();
  // A trace with clocks of its own has one process.
  const int64_t gpu_ahead_ns = ranks.empty() ? 0 : ranks.front().gpu_ahead_ns;
  report_.traces.push_back(MakeTraceLine(path, info, state, gpu_ahead_ns));
  AddNotes(trace, info, state, report_.notes);
  if (gpu_ahead_ns != 0) report_.notes.push_back({trace, NoteKind::kGpuClockAhead, gpu_ahead_ns});
  const std::vector<uint32_t> ids = all_.MergeSums(state);
  AddMetrics(info, state, ids);
  if (const int64_t early = StartsBeforeLaunch(ranks); early > 0)
    report_.notes.push_back({trace, NoteKind::kStartsBeforeLaunch, early});
  if (const int64_t shared = SharedNumbers(ranks); shared > 0)
    report_.notes.push_back({trace, NoteKind::kSharedNumbers, shared});
  const RankResult* const main = MainOf(ranks);
  std::set<int64_t> without_steps;  // processes
  for (RankResult& result : ranks) {
    Renumber(result, ids);
    for (auto& [name, found] : result.kernels.names)
      if (!found.durations.empty()) MergeCounts(fine_[name], std::exchange(found.durations, {}));
    if (result.sequences.beyond_bound > 0)
      report_.notes.push_back({trace, NoteKind::kSequencesBeyondBound, result.sequences.beyond_bound});
    if (result.steps.left_out > 0 && without_steps.insert(result.key.process).second)
      report_.notes.push_back({trace, NoteKind::kStepsBeyondBound, result.steps.left_out});
    if (result.syncs.beyond_bound > 0)
      report_.notes.push_back({trace, NoteKind::kSyncsBeyondBound, result.syncs.beyond_bound});
    const bool is_main = main == &result;
    const bool numbered = info.rank.has_value() && is_main;
    ranks_.push_back({.trace = trace,
                      .number = numbered ? *info.rank : 0,
                      .numbered = numbered,
                      .is_main = is_main,
                      .is_sampled = info.sampled_calls > 0,
                      .epoch_offset_ns = info.epoch_offset_ns,
                      .groups = state.groups(),
                      .result = std::move(result)});
  }
}

void ReportBuilder::AddDetail(const DetailResult& detail) {
  const size_t trace = report_.traces.size() - 1;
  if (detail.without_spans) report_.notes.push_back({trace, NoteKind::kNoOperators, 1});
  if (detail.without_paths) report_.notes.push_back({trace, NoteKind::kNoCriticalPaths, 1});
  operators_.Merge(detail.operators);
  AddReported(trace, detail.collectives);
  if (!detail.clocks.empty())
    for (JobRank& rank : ranks_)
      if (rank.trace == trace)
        rank.clock = detail.clocks.TrackOf(rank.result.key.process, rank.result.key.device);
  for (const RankWaves& rank : detail.waves) waves_.emplace_back(trace, rank);
  for (const CriticalPath& path : detail.paths) paths_.emplace_back(trace, path);
}

void ReportBuilder::AddReported(size_t trace, const importers::ReportedCollectives& collectives) {
  if (collectives.invalid > 0)
    report_.notes.push_back({trace, NoteKind::kMessageSizesInvalid, collectives.invalid});
  if (collectives.beyond_bound > 0)
    report_.notes.push_back({trace, NoteKind::kMessageSizesBeyondBound, collectives.beyond_bound});
  if (collectives.lost > 0) report_.notes.push_back({trace, NoteKind::kCollectivesLost, collectives.lost});
  reported_.Merge(collectives);
}

void ReportBuilder::AddMetrics(const importers::TraceInfo& info, const TraceState& state,
                               std::span<const uint32_t> ids) {
  std::map<RankKey, std::vector<MetricSums>> ranks;
  MetricTable::Kept kept = state.metrics().Finish();
  if (kept.values_beyond > 0)
    report_.notes.push_back({report_.traces.size() - 1, NoteKind::kMetricsBeyondBound, kept.values_beyond});
  for (MetricSums& sums : kept.sums) {
    sums.name = ids[sums.name];
    sums.metric = ids[sums.metric];
    sums.unit = ids[sums.unit];
    ranks[state.ranks().ranks()[sums.rank]].push_back(std::move(sums));
  }
  const bool numbered = info.rank.has_value() && ranks.size() == 1;
  for (auto& [key, sums] : ranks)
    metrics_.push_back(
        {.rank = numbered ? *info.rank : static_cast<int64_t>(metrics_.size()), .sums = std::move(sums)});
}

// Reports of Nsight Systems have no ranks.
std::vector<bool> ReportBuilder::NumberByNames() {
  std::vector<bool> known;
  std::vector<size_t> mains;
  std::vector<std::string> paths;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    known.push_back(ranks_[i].numbered);
    if (!ranks_[i].is_main) continue;
    mains.push_back(i);
    paths.push_back(report_.traces[ranks_[i].trace].path);
  }
  std::set<size_t> traces;
  for (const JobRank& rank : ranks_) traces.insert(rank.trace);
  if (std::ranges::find(known, true) != known.end() || mains.size() < traces.size()) return known;
  const std::optional<std::vector<int64_t>> numbers = RanksInNames(paths);
  for (size_t i = 0; numbers.has_value() && i < mains.size(); ++i) {
    ranks_[mains[i]].number = (*numbers)[i];
    known[mains[i]] = true;
  }
  return known;
}

void ReportBuilder::NumberRanks() {
  const std::vector<bool> known = NumberByNames();
  std::set<int64_t> taken;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (known[i]) taken.insert(ranks_[i].number);
  auto spare = static_cast<int64_t>(ranks_.size());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (known[i]) continue;
    ranks_[i].number = static_cast<int64_t>(i);
    while (!taken.insert(ranks_[i].number).second) ranks_[i].number = spare++;
  }
}

Status ReportBuilder::CheckRanks() const {
  std::vector<const JobRank*> sorted;
  for (const JobRank& rank : ranks_) sorted.push_back(&rank);
  const auto first_ns = [](const JobRank& rank) {
    return rank.result.extent.first_ns + rank.epoch_offset_ns;
  };
  const auto last_ns = [](const JobRank& rank) { return rank.result.extent.last_ns + rank.epoch_offset_ns; };
  std::ranges::stable_sort(sorted, {},
                           [&](const JobRank* rank) { return std::pair(rank->number, first_ns(*rank)); });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const JobRank& a = *sorted[i - 1];
    const JobRank& b = *sorted[i];
    if (a.number != b.number || last_ns(a) <= first_ns(b)) continue;
    const std::string& first = report_.traces[std::min(a.trace, b.trace)].path;
    const std::string& second = report_.traces[std::max(a.trace, b.trace)].path;
    std::error_code elsewhere;
    if (std::filesystem::equivalent(first, second, elsewhere))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} and {} are the same file; give each trace once", first, second));
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} and {} both claim rank {} at the same time; use --rank-from to take ranks from the "
                    "file names, e.g. --rank-from 'rank([0-9]+)'",
                    first, second, a.number));
  }
  return {};
}

Status ReportBuilder::CheckTraces() const {
  // To the ns, and by the epoch if the trace has it: no two ranks agree in all of it.
  const auto key = [this](size_t i) {
    const JobRank& rank = ranks_[i];
    const RankTimeline& timeline = rank.result.timeline;
    return std::tuple(rank.result.extent.first_ns + rank.epoch_offset_ns, rank.result.extent.last_ns,
                      rank.result.key.process, rank.result.key.device, timeline.events(), timeline.busy_ns(),
                      timeline.compute_ns(), timeline.launch_latency().moments.total());
  };
  std::vector<size_t> order;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (!ranks_[i].numbered) order.push_back(i);
  std::ranges::stable_sort(order, {}, key);
  for (size_t i = 1; i < order.size(); ++i) {
    if (key(order[i]) != key(order[i - 1])) continue;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} and {} have the same events; if they are of different ranks, number them with "
                    "--rank-from",
                    report_.traces[ranks_[order[i - 1]].trace].path,
                    report_.traces[ranks_[order[i]].trace].path));
  }
  return {};
}

void ReportBuilder::AlignClocks(const std::vector<std::optional<int64_t>>& offsets) {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (offsets[i].has_value())
      ranks_[i].epoch_offset_ns -= *offsets[i];
    else
      report_.notes.push_back({ranks_[i].trace, NoteKind::kNotAligned, 1});
  }
}

void ReportBuilder::AddRankLines() {
  const auto begin_ns = [](const JobRank& rank) {
    return Int128{rank.result.extent.first_ns} + rank.epoch_offset_ns;
  };
  for (const JobRank& rank : ranks_) report_.ranks.push_back(MakeRankLine(rank));
  if (ranks_.empty()) return;
  const Int128 first_ns = begin_ns(*std::ranges::min_element(ranks_, {}, begin_ns));
  constexpr Int128 kLatest = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < ranks_.size(); ++i)
    report_.ranks[i].begin_ns = static_cast<int64_t>(std::min(kLatest, begin_ns(ranks_[i]) - first_ns));
}

void ReportBuilder::AddDistributions() {
  constexpr size_t kShown = 20;
  std::map<std::string_view, const model::Sketch*> sketches;
  for (uint32_t id = 0; id < all_.kernels().size(); ++id)
    if (all_.kernels()[id].moments.count() > 0) sketches[all_.names()[id]] = &all_.kernels()[id].sketch;
  for (size_t i = 0; i < std::min(kShown, report_.kernels.size()); ++i)
    report_.distributions.push_back(
        MakeDistributionLine(report_.kernels[i], *sketches.at(report_.kernels[i].name)));
}

void ReportBuilder::JoinDropped() {
  std::vector<uint32_t> kept(all_.names().size());
  for (uint32_t id = 0; id < kept.size(); ++id) kept[id] = all_.names().Canonical(id);
  for (JobRank& rank : ranks_) Renumber(rank.result, kept);
  std::map<uint32_t, std::vector<ValueCount>> fine;
  for (const auto& [name, counts] : fine_) MergeCounts(fine[kept[name]], counts);
  fine_ = std::move(fine);
  for (JobMetrics& metrics : metrics_)
    for (MetricSums& sums : metrics.sums)
      for (uint32_t* const name : {&sums.name, &sums.metric, &sums.unit}) *name = kept[*name];
}

void ReportBuilder::AddPaths(const Job& job, const std::vector<std::vector<CollectiveWait>>& waits) {
  for (size_t i = 0; i < ranks_.size(); ++i)
    for (auto& [trace, path] : paths_)
      if (trace == ranks_[i].trace && path.rank == ranks_[i].result.key) {
        AddRankWaits(job, i, waits[i], path);
        report_.critical_paths.push_back(MakeCriticalPathLine(ranks_[i], path));
      }
}

void ReportBuilder::AddWaves() {
  for (const JobRank& rank : ranks_)
    for (const auto& [trace, waves] : waves_)
      if (trace == rank.trace && waves.rank == rank.result.key) {
        WavesLine& line = report_.waves.emplace_back(WavesLine{.rank = rank.number,
                                                               .trace = trace,
                                                               .known_ns = waves.known_ns,
                                                               .unknown_ns = waves.unknown_ns,
                                                               .lost_ns = waves.lost_ns});
        for (const RankWaves::Kernel& kernel : waves.kernels)
          line.kernels.push_back({kernel.name, kernel.count, kernel.total_ns, kernel.lost_ns});
      }
}

// Where they would have been used.
void ReportBuilder::NoteCollectivesBeyond() {
  if (ranks_.size() < 2 && report_.bandwidth.empty()) return;
  for (const JobRank& rank : ranks_)
    if (const int64_t beyond = rank.result.collectives_beyond; beyond > 0)
      report_.notes.push_back({rank.trace, NoteKind::kCollectivesBeyondBound, beyond});
}

void ReportBuilder::NoteMissingSteps() {
  const auto is_beyond_bound = [this](size_t trace) {
    return std::ranges::any_of(report_.notes, [trace](const Note& note) {
      return note.trace == trace && note.kind == NoteKind::kStepsBeyondBound;
    });
  };
  for (size_t trace = 0; trace < report_.traces.size(); ++trace)
    if (std::ranges::find(report_.steps, trace, &StepsLine::trace) == report_.steps.end() &&
        !is_beyond_bound(trace))
      report_.notes.push_back({trace, NoteKind::kNoSteps, 1});
}

Result<Report> ReportBuilder::Finish() && {
  NumberRanks();
  TRY(CheckRanks());
  TRY(CheckTraces());
  // Names sort rank10 before rank2.
  std::ranges::stable_sort(ranks_, {}, &JobRank::number);
  TRY(all_.Finish());
  if (all_.names().has_dropped()) JoinDropped();
  std::vector<std::string_view> libraries;
  for (uint32_t i = 0; i < all_.names().size(); ++i)
    libraries.push_back(communication_.LibraryOf(all_.names()[i]));
  const Job job{.names = all_.names(),
                .kernels = all_.kernels(),
                .libraries = libraries,
                .fine = fine_,
                .ranks = ranks_,
                .metrics = metrics_,
                .reported = &reported_};
  report_.kernels = MakeDurationLines(all_.names(), all_.kernels());
  AddDistributions();
  for (const DurationLine& line : report_.kernels)
    if (const std::string_view library = communication_.LibraryOf(line.name); !library.empty())
      report_.communication.push_back(
          {.name = line.name, .library = library, .count = line.count, .total_ns = line.total_ns});
  report_.graphs = MakeDurationLines(all_.names(), all_.graphs());
  report_.api_calls = MakeDurationLines(all_.names(), all_.calls());
  report_.memcpys = MakeTransferLines(all_.copies());
  report_.memsets = MakeTransferLines(all_.sets());
  CollectiveComparison compared = CompareCollectives(job, !paths_.empty());
  report_.collectives = std::move(compared.lines);
  report_.bandwidth = std::move(compared.bandwidth);
  NoteCollectivesBeyond();
  if (report_.alignment == Alignment::kCollectives) AlignClocks(compared.clock_offsets);
  AddRankLines();
  report_.variability = FindVariability(job);
  report_.windows = FindAnomalousWindows(job);
  report_.copy_effects = FindCopyEffects(job);
  report_.slow_ranks = FindSlowRanks(job);
  report_.kernel_metrics = CompareKernelMetrics(job);
  report_.rank_kernels = SumKernelsByRank(job);
  report_.sequences = ListSequences(job);
  report_.steps = SumSteps(job);
  if (named_steps_) NoteMissingSteps();
  report_.syncs = SumSyncs(job);
  report_.concurrency = ListConcurrency(job);
  report_.launch_patterns = ListLaunchPatterns(job);
  report_.clocks = CompareClocks(job, report_.windows);
  operators_.Finish();
  report_.operators = MakeOperatorLines(operators_);
  AddPaths(job, compared.waits);
  AddWaves();
  report_.advice = Advise(report_);
  return std::move(report_);
}

}  // namespace gpusonde::analyze
