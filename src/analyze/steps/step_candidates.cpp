// SPDX-License-Identifier: Apache-2.0
#include "analyze/steps/step_candidates.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/ascii.h"
#include "base/saturated.h"

namespace gpusonde::analyze {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#";  // torch/profiler/profiler.py
constexpr size_t kMinSteps = 3, kMinKnownSteps = 2;
constexpr double kMaxOverlap = 0.01;
constexpr double kHighCoverage = 0.8, kMinCoverage = 0.5;

// torch.autograd.profiler.emit_nvtx names its ranges so; operators repeat without being steps.
bool IsOperator(std::string_view label) { return label.contains(", op_id = ") || label.contains(", seq = "); }

// What is known of a label's ranges.
struct Repetition {
  std::vector<TimeRange> ranges;
  int64_t total_ns = 0;
  int64_t overlap_ns = 0;
  double covered = 0;  // of the time from the first start to the last end

  // `dropped_ns`: of further ranges, in the time of `dropped`, which aren't known to overlap others.
  Repetition(std::vector<TimeRange> all, int64_t dropped_ns, Extent dropped) : ranges(std::move(all)) {
    std::ranges::sort(ranges, {},
                      [](const TimeRange& range) { return std::pair(range.from_ns, range.to_ns); });
    int64_t until_ns = ranges.front().from_ns;
    for (const TimeRange& range : ranges) {
      total_ns = AddSaturated(total_ns, range.to_ns - range.from_ns);
      overlap_ns =
          AddSaturated(overlap_ns, std::max<int64_t>(std::min(until_ns, range.to_ns) - range.from_ns, 0));
      until_ns = std::max(until_ns, range.to_ns);
    }
    dropped.Cover(ranges.front().from_ns, until_ns);
    const int64_t span_ns = dropped.last_ns - dropped.first_ns;
    const auto known_ns = static_cast<double>(total_ns - overlap_ns);
    if (span_ns > 0) covered = (known_ns + static_cast<double>(dropped_ns)) / static_cast<double>(span_ns);
  }
  bool IsDisjoint() const {
    return static_cast<double>(overlap_ns) <= kMaxOverlap * static_cast<double>(total_ns);
  }
};

// Ends ranges where the next begins.
std::vector<TimeRange> Disjoint(std::vector<TimeRange> sorted) {
  for (size_t i = 0; i + 1 < sorted.size(); ++i)
    sorted[i].to_ns = std::min(sorted[i].to_ns, sorted[i + 1].from_ns);
  std::erase_if(sorted, [](const TimeRange& range) { return range.from_ns >= range.to_ns; });
  return sorted;
}

}  // namespace

uint32_t StepCandidates::Label(std::string_view name) {
  std::string label(name);
  std::erase_if(label, IsDigit);
  return labels_.Add(label);
}

void StepCandidates::Dropped::Merge(const Dropped& other) {
  count = AddSaturated(count, other.count);
  total_ns = AddSaturated(total_ns, other.total_ns);
  extent.Cover(other.extent);
}

void StepCandidates::Ranges::Reduce() {
  if (kept.size() <= kMaxRanges) return;
  // The longest first. Labels are numbered differently in other threads: of ranges that differ only in them
  // all are kept, or none.
  const auto key = [](const Labelled& range) {
    return std::tuple(range.start_ns - range.end_ns, range.start_ns);
  };
  const auto beyond = kept.begin() + static_cast<std::ptrdiff_t>(kMaxRanges);
  std::ranges::nth_element(kept, beyond, {}, key);
  const auto first_dropped = key(*beyond);
  std::erase_if(kept, [&](const Labelled& range) {
    if (key(range) < first_dropped) return false;
    dropped[range.label].Merge({1, range.end_ns - range.start_ns, {range.start_ns, range.end_ns}});
    return true;
  });
}

void StepCandidates::Add(std::span<const importers::Range> ranges) {
  for (const importers::Range& range : ranges) {
    if (range.label == importers::Range::kNoLabel || range.start_ns >= range.end_ns) continue;
    Ranges& of_process = by_process_[range.process];
    of_process.kept.push_back({range.start_ns, range.end_ns, range.label});
    if (of_process.kept.size() >= 2 * kMaxRanges) of_process.Reduce();
  }
}

void StepCandidates::Merge(const StepCandidates& other) {
  const std::vector<uint32_t> labels = labels_.AddAll(other.labels_);
  for (const auto& [process, ranges] : other.by_process_) {
    Ranges& of_process = by_process_[process];
    for (Labelled range : ranges.kept) {
      range.label = labels[range.label];
      of_process.kept.push_back(range);
    }
    for (const auto& [label, dropped] : ranges.dropped) of_process.dropped[labels[label]].Merge(dropped);
    of_process.Reduce();
  }
}

void StepCandidates::Finish() {
  labels_.Finish();
  for (auto& [process, ranges] : by_process_) ranges.Reduce();
}

Steps StepCandidates::StepsOf(int64_t process, std::string_view prefix, const ClockWithout& clock) const {
  const auto found = by_process_.find(process);
  if (found == by_process_.end()) return {};
  std::map<std::string_view, std::vector<TimeRange>> by_label;
  for (const Labelled& range : found->second.kept)
    if (labels_.Canonical(range.label) == range.label)
      by_label[labels_[range.label]].push_back(clock.Without(TimeRange{range.start_ns, range.end_ns}));
  std::map<std::string_view, Dropped> dropped;
  for (const auto& [label, of_label] : found->second.dropped)
    if (labels_.Canonical(label) == label) dropped[labels_[label]].Merge(of_label);
  Steps best;
  int64_t left_out = 0;
  std::tuple<bool, bool, size_t, int64_t> best_rank;
  for (auto& [label, ranges] : by_label) {
    const bool is_known = prefix.empty() ? label == kProfilerStep : label.starts_with(prefix);
    if (!prefix.empty() && !is_known) continue;
    Dropped& others = dropped[label];
    if (others.count > 0)
      others.extent = {clock.Without(others.extent.first_ns), clock.Without(others.extent.last_ns)};
    const Repetition repetition(std::move(ranges), others.total_ns, others.extent);
    const size_t count = repetition.ranges.size();
    if (!repetition.IsDisjoint()) continue;
    if (count < (is_known ? kMinKnownSteps : kMinSteps)) continue;
    if (!is_known && (repetition.covered < kMinCoverage || IsOperator(label))) continue;
    if (others.count > 0) {
      left_out = std::max(left_out, others.count);
      continue;
    }
    const bool most = repetition.covered >= kHighCoverage;
    const std::tuple rank(is_known, most, most ? count : 0, repetition.total_ns);
    if (!best.label.empty() && rank <= best_rank) continue;
    best = {.label = std::string(label), .ranges = Disjoint(repetition.ranges)};
    best_rank = rank;
  }
  if (best.label.empty()) best.left_out = left_out;
  return best;
}

std::map<std::string, std::vector<TimeRange>> StepCandidates::RangesOf(int64_t process) const {
  std::map<std::string, std::vector<TimeRange>> by_label;
  const auto found = by_process_.find(process);
  if (found == by_process_.end() || !found->second.dropped.empty()) return by_label;
  for (const Labelled& range : found->second.kept)
    by_label[std::string(labels_[labels_.Canonical(range.label)])].push_back({range.start_ns, range.end_ns});
  return by_label;
}

bool StepCandidates::HasAll() const {
  return std::ranges::all_of(by_process_, [](const auto& process) { return process.second.dropped.empty(); });
}

std::vector<int64_t> StepCandidates::Processes() const {
  std::vector<int64_t> processes;
  for (const auto& [process, ranges] : by_process_) processes.push_back(process);
  return processes;
}

std::vector<TimeRange> StepCandidates::TimesOf(int64_t process, std::string_view prefix,
                                               const ClockWithout& clock) const {
  std::vector<TimeRange> times;
  if (const auto found = by_process_.find(process); found != by_process_.end())
    for (const Labelled& range : found->second.kept)
      if (labels_[labels_.Canonical(range.label)].starts_with(prefix))
        times.push_back(clock.Without(TimeRange{range.start_ns, range.end_ns}));
  std::ranges::sort(times, {}, &TimeRange::from_ns);
  return UnionOf(std::move(times));
}

}  // namespace gpusonde::analyze
