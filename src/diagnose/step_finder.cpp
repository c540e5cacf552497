// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

constexpr size_t kLeastSteps = 8;  // that an anchor is chosen from
constexpr int64_t kLeastHistoryNs = kNanosPerSecond;
// Signals tell little of steps that are far shorter than their buckets, but for means over many.
constexpr double kShortestStepNs = 4e6;
// Work between two anchors may vary so much (standard deviation over mean): steps of several kinds that
// follow each other do; 96 equal layers and what follows them have 0.48.
constexpr double kMostVariation = 0.3;
constexpr size_t kMostHistory = 200'000;
// An anchor that stays away for as much work as in so many steps has lost its meaning.
constexpr double kLostSteps = 20;
// Signatures that don't come again (bytes that follow the data) are no types.
constexpr int64_t kTypesAfter = 24;
constexpr size_t kMostTypes = 64;

uint64_t Mix(uint64_t value) {  // splitmix64's finalizer
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Of one piece; a step's is the sum of its pieces', whatever their order.
uint64_t SignatureOf(const Work& work) {
  const uint64_t name = IdHasher("work").Add(work.name).Finish().low;
  return Mix(name + Mix(work.shape + static_cast<uint64_t>(work.kind)));
}

struct Occurrences {
  std::vector<size_t> at;  // places in the history
  int64_t length_ns = 0;
};

// Standard deviation over mean of the work between one and the next, and the mean time.
struct Regularity {
  double variation = 0;
  double mean_work = 0;
  double mean_ns = 0;
};

Regularity Measure(const Occurrences& occurrences, std::span<const Work> history) {
  const std::vector<size_t>& at = occurrences.at;
  const auto intervals = static_cast<double>(at.size() - 1);
  double sum = 0;
  double squares = 0;
  for (size_t i = 1; i < at.size(); ++i) {
    const auto work = static_cast<double>(at[i] - at[i - 1]);
    sum += work;
    squares += work * work;
  }
  const double mean = sum / intervals;
  const double variance = std::max(0.0, squares / intervals - mean * mean);
  return {
      .variation = std::sqrt(variance) / mean,
      .mean_work = mean,
      .mean_ns = static_cast<double>(history[at.back()].time_ns - history[at.front()].time_ns) / intervals};
}

std::string_view NameOf(Work::Kind kind) {
  constexpr std::string_view kNames[] = {"range", "sync", "kernel", "copy"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

void StepFinder::Take(Work work) {
  if (work.time_ns < last_work_ns_)
    ++late_;
  else
    waiting_.emplace(work.time_ns, std::move(work));
}

std::vector<StepSpan> StepFinder::Advance(int64_t time_ns) {
  std::vector<StepSpan> steps;
  const auto end = waiting_.lower_bound(time_ns);
  for (auto at = waiting_.begin(); at != end; ++at) {
    Work& work = at->second;
    last_work_ns_ = std::max(last_work_ns_, work.time_ns);
    if (!anchor_.has_value()) {
      history_.push_back(std::move(work));
      continue;
    }
    const bool begins = work.kind == anchor_->first && work.name == anchor_->second;
    if (begins) {
      if (step_start_ns_.has_value()) steps.push_back(Close(work.time_ns));
      step_start_ns_ = work.time_ns;
      signature_ = 0;
      pieces_ = 0;
    }
    if (work.kind != Work::Kind::kRange) signature_ += SignatureOf(work);
    if (static_cast<double>(++pieces_) > kLostSteps * typical_work_ + 100) {
      anchor_.reset();
      step_start_ns_.reset();
    }
  }
  waiting_.erase(waiting_.begin(), end);
  if (!anchor_.has_value()) Choose();
  return steps;
}

void StepFinder::Gap(int64_t time_ns) {
  for (const StepSpan& lost : Advance(time_ns)) (void)lost;
  step_start_ns_.reset();
  history_.clear();
}

std::optional<std::string> StepFinder::anchor() const {
  if (!anchor_.has_value()) return std::nullopt;
  return fmt::format("{} {}", NameOf(anchor_->first), anchor_->second);
}

void StepFinder::Choose() {
  if (history_.size() < kLeastSteps || history_.back().time_ns - history_.front().time_ns < kLeastHistoryNs)
    return;
  std::map<Token, Occurrences> tokens;
  for (size_t i = 0; i < history_.size(); ++i) {
    Occurrences& occurrences = tokens[{history_[i].kind, history_[i].name}];
    occurrences.at.push_back(i);
    occurrences.length_ns += history_[i].length_ns;
  }
  struct Candidate {
    const Token* token;
    size_t count;
    int64_t length_ns;
    Regularity regularity;
  };
  std::vector<Candidate> candidates;
  size_t most = 0;
  for (const auto& [token, occurrences] : tokens) {
    if (occurrences.at.size() <= kLeastSteps) continue;
    const Regularity regularity = Measure(occurrences, history_);
    if (regularity.variation > kMostVariation || regularity.mean_ns < kShortestStepNs) continue;
    candidates.push_back({&token, occurrences.at.size(), occurrences.length_ns, regularity});
    most = std::max(most, occurrences.at.size());
  }
  // Those that come once a step: as often as the most frequent ones of their kind. What people say of their
  // program before what it waits for before what it runs, unless that comes once in several steps; of ranges
  // the longest.
  const Candidate* best = nullptr;
  for (const Work::Kind kind :
       {Work::Kind::kRange, Work::Kind::kSync, Work::Kind::kKernel, Work::Kind::kCopy}) {
    size_t most_of_kind = 0;
    for (const Candidate& candidate : candidates)
      if (candidate.token->first == kind) most_of_kind = std::max(most_of_kind, candidate.count);
    if (most_of_kind * 4 < most || most_of_kind == 0) continue;
    for (const Candidate& candidate : candidates) {
      if (candidate.token->first != kind || candidate.count * 10 < most_of_kind * 9) continue;
      if (best == nullptr || candidate.length_ns > best->length_ns) best = &candidate;
    }
    break;
  }
  if (best != nullptr) {
    anchor_ = *best->token;
    typical_work_ = best->regularity.mean_work;
    pieces_ = 0;
    history_.clear();
  } else if (history_.size() > kMostHistory) {
    history_.erase(history_.begin(), history_.begin() + kMostHistory / 2);
  }
}

StepSpan StepFinder::Close(int64_t end_ns) {
  return {.type = TypeOf(signature_), .start_ns = *step_start_ns_, .end_ns = end_ns};
}

Id128 StepFinder::TypeOf(uint64_t fine) {
  ++typed_;
  if (fine_types_.size() <= kMostTypes) ++fine_types_[fine];
  int64_t recurring = 0;
  for (const auto& [type, count] : fine_types_)
    if (count >= 3) recurring += count;
  const bool useful = typed_ < kTypesAfter || recurring * 2 >= typed_;
  return IdHasher("step").Add(anchor_->second).Add(useful ? fine : 0).Finish();
}

}  // namespace gpusonde::diagnose
