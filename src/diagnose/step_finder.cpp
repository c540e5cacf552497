// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/nearly_sorted.h"
#include "base/time.h"
#include "diagnose/step_table.h"

namespace gpusonde::diagnose {
namespace {

// "step 12" and "step 13" are the same work.
std::string_view WithoutNumber(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789 #:_/-.[]()");
  return last == std::string_view::npos ? name : name.substr(0, last + 1);
}

// Whether the last word is a usual name for steps: "train_step", "ProfilerStep", "iter".
bool IsStepName(std::string_view name) {
  const std::string lower = ToLower(std::string(name));
  constexpr std::string_view kWords[] = {"step", "iteration", "iter", "batch", "minibatch"};
  return lower.ends_with("profilerstep") || std::ranges::any_of(kWords, [&](std::string_view word) {
           if (!lower.ends_with(word)) return false;
           const size_t before = lower.size() - word.size();
           return before == 0 || !IsLetterOrDigit(lower[before - 1]);
         });
}

std::string_view NameOf(Work::Kind kind) {
  constexpr std::string_view kNames[] = {"range", "sync", "kernel", "copy"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

// The first token of each kind stands for all names beyond the table's bound.
StepFinder::StepFinder() {
  for (size_t kind = 0; kind < kKinds; ++kind) AddToken(static_cast<Work::Kind>(kind), "(others)");
}

void StepFinder::Ingest(const Work& work, std::span<const WorkTime> times) {
  std::optional<uint32_t> token;
  for (const WorkTime& time : times) {
    if (time.end_ns < last_work_ns_) {
      ++late_;
      continue;
    }
    if (!token.has_value()) token = TokenOf(work);
    pending_.push_back({*token, work.shape, time.end_ns, time.length_ns});
  }
}

uint32_t StepFinder::AddToken(Work::Kind kind, std::string_view name) {
  const auto token = static_cast<uint32_t>(tokens_.size());
  tokens_.push_back({kind, std::string(name), IdHasher("work").Add(name).Finish().low,
                     kind == Work::Kind::kRange && IsStepName(name)});
  tokens_by_name_[static_cast<size_t>(kind)].emplace(tokens_.back().name, token);
  return token;
}

uint32_t StepFinder::TokenOf(const Work& work) {
  const auto& by_name = tokens_by_name_[static_cast<size_t>(work.kind)];
  const std::string_view name = work.kind == Work::Kind::kRange ? WithoutNumber(work.name) : work.name;
  if (const auto known = by_name.find(name); known != by_name.end()) return known->second;
  return tokens_.size() < kStepTable.finder.max_names ? AddToken(work.kind, name)
                                                      : static_cast<uint32_t>(work.kind);
}

// A step's signature is the sum of its pieces' signatures, so that their order doesn't matter.
uint64_t StepFinder::SignatureOf(const WorkPiece& piece) const {
  const WorkToken& token = tokens_[piece.token];
  return Mix(token.hash + Mix(piece.shape + static_cast<uint64_t>(token.kind)));
}

std::vector<StepSpan> StepFinder::Advance(int64_t time_ns) {
  std::vector<StepSpan> steps;
  // What is left of the last call is sorted, and work mostly arrives in the order of time. Equal times stay
  // in the order of arrival.
  SortNearlySorted(pending_, &WorkPiece::time_ns);
  const auto later = std::ranges::lower_bound(pending_, time_ns, {}, &WorkPiece::time_ns);
  for (const WorkPiece& piece : std::span(pending_.begin(), later)) Follow(piece, steps);
  pending_.erase(pending_.begin(), later);
  if (!anchor_.has_value()) Choose(false, steps);
  return steps;
}

void StepFinder::Follow(const WorkPiece& piece, std::vector<StepSpan>& steps) {
  last_work_ns_ = std::max(last_work_ns_, piece.time_ns);
  if (!anchor_.has_value()) {
    history_.push_back(piece);
    return;
  }
  FollowNamedStep(piece);
  if (!step_start_ns_.has_value() && !head_ns_.has_value()) head_ns_ = piece.time_ns - piece.length_ns;
  if (EndsStep(piece)) {
    if (!step_start_ns_.has_value()) StartBefore(piece);
    if (step_start_ns_.has_value()) steps.push_back(Close(piece.time_ns));
    StartAnew();
    step_start_ns_ = piece.time_ns;
  }
  const Work::Kind kind = tokens_[piece.token].kind;
  has_kernels_ |= kind == Work::Kind::kKernel;
  gpu_pieces_ += kind == Work::Kind::kKernel || kind == Work::Kind::kCopy ? 1 : 0;
  if (kind != Work::Kind::kRange) signature_ += SignatureOf(piece);
  const auto& table = kStepTable.finder;
  if (static_cast<double>(++pieces_) > table.lost_steps * typical_work_ + table.lost_pieces) {
    anchor_.reset();
    step_start_ns_.reset();
    head_ns_.reset();
  }
}

void StepFinder::StartAnew() {
  step_start_ns_.reset();
  head_ns_.reset();
  cut_ = false;
  signature_ = 0;
  pieces_ = gpu_pieces_ = 0;
  occurrences_ = 0;
}

// The step under way when observation resumes is cut.
void StepFinder::Resume(int64_t time_ns) {
  if (anchor_.has_value()) {
    step_start_ns_ = time_ns;
    cut_ = true;
  } else if (!history_.empty()) {
    if (!breaks_.empty() && breaks_.back().at == history_.size()) breaks_.pop_back();
    breaks_.push_back({history_.size(), time_ns});
  }
}

// Syncs after copies alone (a checkpoint is written, a loss is read) belong to the step around them.
bool StepFinder::EndsStep(const WorkPiece& piece) {
  if (piece.token != *anchor_ || (needs_kernels_ && !has_kernels_)) return false;
  has_kernels_ = false;
  if (++occurrences_ < occurrences_per_step_) return false;
  occurrences_ = 0;
  return true;
}

// The first step starts with its range, or with the work before its anchor if that is about as much as in
// other steps. Its signature includes its own anchor, as the previous step's anchor is missing.
void StepFinder::StartBefore(const WorkPiece& anchor) {
  const auto pieces = static_cast<double>(pieces_ + 1);
  if (tokens_[anchor.token].kind == Work::Kind::kRange)
    step_start_ns_ = anchor.time_ns - anchor.length_ns;
  else if (pieces > typical_work_ * kStepTable.finder.min_first &&
           pieces < typical_work_ * kStepTable.finder.max_first)
    step_start_ns_ = head_ns_;
  cut_ = false;
  if (tokens_[anchor.token].kind != Work::Kind::kRange) signature_ += SignatureOf(anchor);
}

// Switches to a range that is named as a step if one appears while another anchor is in use.
void StepFinder::FollowNamedStep(const WorkPiece& piece) {
  if (tokens_[*anchor_].is_step_name) return;
  ++pieces_since_named_;
  if (!tokens_[piece.token].is_step_name || named_.value_or(piece.token) != piece.token) return;
  if (!named_.has_value()) pieces_since_named_ = 0;
  named_ = piece.token;
  if (++named_seen_ < kStepTable.anchor.min_named) return;
  anchor_ = named_;
  occurrences_per_step_ = 1;
  needs_kernels_ = false;
  typical_work_ =
      static_cast<double>(pieces_since_named_) / static_cast<double>(kStepTable.anchor.min_named - 1);
  pieces_ = gpu_pieces_ = 0;
  step_start_ns_ = piece.time_ns - piece.length_ns;
  cut_ = false;
  signature_ = 0;
}

std::vector<StepSpan> StepFinder::Gap(int64_t time_ns, bool observed) {
  std::vector<StepSpan> steps = Advance(time_ns);
  StartAnew();
  if (observed) Resume(time_ns);
  return steps;
}

std::vector<StepSpan> StepFinder::Finish() {
  std::vector<StepSpan> steps;
  if (!anchor_.has_value()) Choose(true, steps);
  StartAnew();
  return steps;
}

std::optional<int64_t> StepFinder::needed_since_ns() const {
  if (step_start_ns_.has_value()) return step_start_ns_;
  if (head_ns_.has_value()) return head_ns_;
  if (history_.empty()) return std::nullopt;
  return history_.front().time_ns - history_.front().length_ns;
}

std::optional<std::string> StepFinder::anchor() const {
  if (!anchor_.has_value()) return std::nullopt;
  const std::string text = fmt::format("{} {}", NameOf(tokens_[*anchor_].kind), tokens_[*anchor_].name);
  return occurrences_per_step_ == 1 ? text : fmt::format("{}, {} to a step", text, occurrences_per_step_);
}

// How long the history was observed: from the first to the last piece of work, without the gaps.
int64_t StepFinder::ObservedNs() const {
  int64_t observed_ns = history_.back().time_ns - history_.front().time_ns;
  for (const Break& each : breaks_)
    if (each.at < history_.size()) observed_ns -= history_[each.at].time_ns - history_[each.at - 1].time_ns;
  return observed_ns;
}

void StepFinder::ForgetHistory(size_t pieces) {
  history_.erase(history_.begin(), history_.begin() + static_cast<ptrdiff_t>(pieces));
  std::erase_if(breaks_, [pieces](const Break& each) { return each.at <= pieces; });
  for (Break& each : breaks_) each.at -= pieces;
}

// Chooses an anchor if the history allows it. At the end of the input, shorter histories are accepted.
void StepFinder::Choose(bool at_end, std::vector<StepSpan>& steps) {
  if (history_.empty()) return;
  const auto& table = kStepTable.finder;
  const int64_t length_ns = ObservedNs();
  if (!at_end && (history_.size() < choose_at_ || length_ns < table.min_history_ns)) return;
  const bool is_long = history_.size() > table.max_history / 2 || length_ns >= table.long_history_ns;
  if (at_end || !is_long || last_work_ns_ >= choose_after_ns_) {
    using History = AnchorSearch::History;
    const History state = at_end                               ? History::kComplete
                          : is_long                            ? History::kLong
                          : length_ns < table.young_history_ns ? History::kYoung
                                                               : History::kGrowing;
    if (const auto found = AnchorSearch(history_, breaks_, tokens_).Find(state); found.has_value())
      return Use(*found, steps);
    if (is_long) choose_after_ns_ = last_work_ns_ + table.long_pause_ns;
  }
  if (history_.size() > table.max_history) ForgetHistory(table.max_history / 2);
  choose_at_ = static_cast<size_t>(table.history_growth * static_cast<double>(history_.size()));
}

void StepFinder::Use(const Anchor& anchor, std::vector<StepSpan>& steps) {
  anchor_ = anchor.token;
  occurrences_per_step_ = anchor.occurrences;
  occurrences_ = 0;
  needs_kernels_ = anchor.needs_kernels;
  has_kernels_ = false;
  typical_work_ = anchor.typical_work;
  pieces_ = gpu_pieces_ = 0;
  named_.reset();
  named_seen_ = 0;
  choose_at_ = 0;
  const std::vector<WorkPiece> history = std::exchange(history_, {});
  const std::vector<Break> breaks = std::exchange(breaks_, {});
  auto next = breaks.begin();
  const auto resume = [&] {
    StartAnew();
    Resume((next++)->resumed_ns);
  };
  for (size_t i = 0; i < history.size(); ++i) {
    if (next != breaks.end() && next->at == i) resume();
    Follow(history[i], steps);
  }
  if (next != breaks.end()) resume();  // and nothing was observed since
}

StepSpan StepFinder::Close(int64_t end_ns) {
  if (cut_) return {.type = {}, .start_ns = *step_start_ns_, .end_ns = end_ns, .cut = true};
  return {.type = TypeOf(signature_), .start_ns = *step_start_ns_, .end_ns = end_ns, .work = gpu_pieces_};
}

Id128 StepFinder::TypeOf(uint64_t fine) {
  if (fine_types_.size() >= kStepTable.finder.max_types && !fine_types_.contains(fine)) {
    // Odd steps of hours must not take the place of types that recur.
    typed_ /= 2;
    for (auto& [type, count] : fine_types_) count /= 2;
    std::erase_if(fine_types_, [](const auto& type) { return type.second == 0; });
  }
  ++typed_;
  if (fine_types_.size() < kStepTable.finder.max_types || fine_types_.contains(fine)) ++fine_types_[fine];
  int64_t recurring = 0;
  for (const auto& [type, count] : fine_types_)
    if (count >= kStepTable.finder.recurs) recurring += count;
  const bool useful =
      typed_ < kStepTable.finder.types_after ||
      static_cast<double>(recurring) >= kStepTable.finder.min_recurring * static_cast<double>(typed_);
  return IdHasher("step").Add(tokens_[*anchor_].name).Add(useful ? fine : 0).Finish();
}

}  // namespace gpusonde::diagnose
