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
// While no anchor is found, it is looked for again when there is so much more history.
constexpr double kHistoryGrowth = 1.25;
// More names than that are those of a program that makes them up; the rest count as one.
constexpr size_t kMostTokens = 20'000;
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

std::string_view NameOf(Work::Kind kind) {
  constexpr std::string_view kNames[] = {"range", "sync", "kernel", "copy"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

struct StepFinder::Occurrences {
  std::vector<size_t> at;  // places in the history
  int64_t length_ns = 0;
};

// Standard deviation over mean of the work between one and the next, and the mean time.
struct StepFinder::Regularity {
  double variation = 0;
  double mean_work = 0;
  double mean_ns = 0;
};

// The first tokens stand for all names that find no place, one for each kind.
StepFinder::StepFinder() {
  for (size_t kind = 0; kind < kKinds; ++kind) AddToken(static_cast<Work::Kind>(kind), "(others)");
}

void StepFinder::Take(const Work& work) {
  if (work.time_ns < last_work_ns_)
    ++late_;
  else
    waiting_.push_back({TokenOf(work), work.shape, work.time_ns, work.length_ns});
}

uint32_t StepFinder::AddToken(Work::Kind kind, std::string_view name) {
  const auto token = static_cast<uint32_t>(tokens_.size());
  tokens_.push_back({kind, std::string(name), IdHasher("work").Add(name).Finish().low});
  tokens_by_name_[static_cast<size_t>(kind)].emplace(tokens_.back().name, token);
  return token;
}

uint32_t StepFinder::TokenOf(const Work& work) {
  const auto& by_name = tokens_by_name_[static_cast<size_t>(work.kind)];
  if (const auto known = by_name.find(work.name); known != by_name.end()) return known->second;
  return tokens_.size() < kMostTokens ? AddToken(work.kind, work.name) : static_cast<uint32_t>(work.kind);
}

// A step's is the sum of its pieces', whatever their order.
uint64_t StepFinder::SignatureOf(const Piece& piece) const {
  const Token& token = tokens_[piece.token];
  return Mix(token.hash + Mix(piece.shape + static_cast<uint64_t>(token.kind)));
}

std::vector<StepSpan> StepFinder::Advance(int64_t time_ns) {
  std::vector<StepSpan> steps;
  const auto later = std::ranges::stable_partition(
      waiting_, [time_ns](const Piece& piece) { return piece.time_ns < time_ns; });
  const std::span<Piece> now(waiting_.begin(), later.begin());
  std::ranges::stable_sort(now, {}, &Piece::time_ns);
  for (const Piece& piece : now) Follow(piece, steps);
  waiting_.erase(waiting_.begin(), later.begin());
  if (!anchor_.has_value()) Choose();
  return steps;
}

void StepFinder::Follow(const Piece& piece, std::vector<StepSpan>& steps) {
  last_work_ns_ = std::max(last_work_ns_, piece.time_ns);
  if (!anchor_.has_value()) {
    history_.push_back(piece);
    return;
  }
  if (piece.token == *anchor_) {
    if (step_start_ns_.has_value()) steps.push_back(Close(piece.time_ns));
    step_start_ns_ = piece.time_ns;
    cut_ = false;
    signature_ = 0;
    pieces_ = 0;
  }
  if (tokens_[piece.token].kind != Work::Kind::kRange) signature_ += SignatureOf(piece);
  if (static_cast<double>(++pieces_) > kLostSteps * typical_work_ + 100) {
    anchor_.reset();
    step_start_ns_.reset();
  }
}

void StepFinder::Gap(int64_t time_ns, bool heard) {
  for (const StepSpan& lost : Advance(time_ns)) (void)lost;
  step_start_ns_.reset();
  if (heard && anchor_.has_value()) step_start_ns_ = time_ns;
  cut_ = heard;
  history_.clear();
  choose_at_ = 0;
}

std::optional<std::string> StepFinder::anchor() const {
  if (!anchor_.has_value()) return std::nullopt;
  return fmt::format("{} {}", NameOf(tokens_[*anchor_].kind), tokens_[*anchor_].name);
}

StepFinder::Regularity StepFinder::Measure(const Occurrences& occurrences) const {
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
      .mean_ns = static_cast<double>(history_[at.back()].time_ns - history_[at.front()].time_ns) / intervals};
}

void StepFinder::Choose() {
  if (history_.size() < std::max(kLeastSteps, choose_at_) ||
      history_.back().time_ns - history_.front().time_ns < kLeastHistoryNs)
    return;
  choose_at_ = static_cast<size_t>(kHistoryGrowth * static_cast<double>(history_.size()));
  std::unordered_map<uint32_t, Occurrences> by_token;
  for (size_t i = 0; i < history_.size(); ++i) {
    Occurrences& occurrences = by_token[history_[i].token];
    occurrences.at.push_back(i);
    occurrences.length_ns += history_[i].length_ns;
  }
  struct Candidate {
    uint32_t token;
    size_t count;
    int64_t length_ns;
    Regularity regularity;
  };
  std::vector<Candidate> candidates;
  size_t most = 0;
  for (const auto& [token, occurrences] : by_token) {
    if (occurrences.at.size() <= kLeastSteps) continue;
    const Regularity regularity = Measure(occurrences);
    if (regularity.variation > kMostVariation || regularity.mean_ns < kShortestStepNs) continue;
    candidates.push_back({token, occurrences.at.size(), occurrences.length_ns, regularity});
    most = std::max(most, occurrences.at.size());
  }
  // Of equals the same is chosen whatever came first.
  std::ranges::sort(candidates, {}, [this](const Candidate& each) { return tokens_[each.token].name; });
  // Those that come once a step: as often as the most frequent ones of their kind. What people say of their
  // program before what it waits for before what it runs, unless that comes once in several steps; of ranges
  // the longest.
  const Candidate* best = nullptr;
  for (const Work::Kind kind :
       {Work::Kind::kRange, Work::Kind::kSync, Work::Kind::kKernel, Work::Kind::kCopy}) {
    size_t most_of_kind = 0;
    for (const Candidate& candidate : candidates)
      if (tokens_[candidate.token].kind == kind) most_of_kind = std::max(most_of_kind, candidate.count);
    if (most_of_kind * 4 < most || most_of_kind == 0) continue;
    for (const Candidate& candidate : candidates) {
      if (tokens_[candidate.token].kind != kind || candidate.count * 10 < most_of_kind * 9) continue;
      if (best == nullptr || candidate.length_ns > best->length_ns) best = &candidate;
    }
    break;
  }
  if (best != nullptr) {
    anchor_ = best->token;
    typical_work_ = best->regularity.mean_work;
    pieces_ = 0;
    history_.clear();
    choose_at_ = 0;
  } else if (history_.size() > kMostHistory) {
    history_.erase(history_.begin(), history_.begin() + kMostHistory / 2);
    choose_at_ = 0;
  }
}

StepSpan StepFinder::Close(int64_t end_ns) {
  if (cut_) return {.type = {}, .start_ns = *step_start_ns_, .end_ns = end_ns, .cut = true};
  return {.type = TypeOf(signature_), .start_ns = *step_start_ns_, .end_ns = end_ns};
}

Id128 StepFinder::TypeOf(uint64_t fine) {
  ++typed_;
  if (fine_types_.size() <= kMostTypes) ++fine_types_[fine];
  int64_t recurring = 0;
  for (const auto& [type, count] : fine_types_)
    if (count >= 3) recurring += count;
  const bool useful = typed_ < kTypesAfter || recurring * 2 >= typed_;
  return IdHasher("step").Add(tokens_[*anchor_].name).Add(useful ? fine : 0).Finish();
}

}  // namespace gpusonde::diagnose
