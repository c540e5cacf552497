// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "diagnose/median.h"

namespace gpusonde::diagnose {
namespace {

constexpr size_t kMinSteps = 8;  // the fewest occurrences to choose an anchor from
constexpr int64_t kMinHistoryNs = kNanosPerSecond;
constexpr int64_t kLongHistoryNs = 10 * kNanosPerSecond;
// More frequent work is only a part of a step. Kernels and copies may take milliseconds themselves, so that
// they mark steps shorter than the second bound only if a long history has no other anchor.
constexpr double kMinStepNs = 5e5, kMinKernelStepNs = 4e6;
// A range that is named as a step needn't be regular; this many occurrences suffice.
constexpr int64_t kMinNamedSteps = 3;
// Upper bound of the variation (standard deviation over mean) of the amount of work between two anchors.
// Alternating steps of several kinds are below it; 96 equal layers and what follows them have 0.48.
constexpr double kMaxVariation = 0.3;
// Ranges and syncs occur once per layer only in programs that synchronize per layer, so a weaker condition is
// enough for them: this share of the intervals is within that share of their median. Some steps are followed
// by an evaluation.
constexpr double kMinAlike = 0.75, kAlike = 0.25;
// A round has at most this many intervals: an evaluation after every ten steps doesn't make those one step.
constexpr size_t kMaxIntervalsOfRound = 8;
// Share of the intervals that equal the one a round before, and the fewest rounds to tell from.
constexpr double kMinSameInRounds = 0.9;
constexpr size_t kMinSyncRounds = 4;
// Requests of varying size have nearly all time without GPU work after their syncs, and a noticeable part of
// all time.
constexpr double kMinIdleAfterRequests = 0.8, kMinIdle = 0.1;
constexpr size_t kMaxHistory = 100'000;
// While there is no anchor, the search is repeated when the history has grown by this factor.
constexpr double kHistoryGrowth = 1.25;
// Programs with more names generate them; the names beyond this count as one.
constexpr size_t kMaxTokens = 20'000;
// An anchor is given up when it doesn't occur for as much work as this many steps have.
constexpr double kLostSteps = 20;
// From this many steps on, types whose signatures mostly don't recur (sizes that depend on data) are merged.
constexpr int64_t kTypesAfter = 24;
constexpr size_t kMaxTypes = 64;

uint64_t Mix(uint64_t value) {  // splitmix64's finalizer
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// "step 12" and "step 13" are the same work.
std::string_view WithoutNumber(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789 #:_/-.[]()");
  return last == std::string_view::npos ? name : name.substr(0, last + 1);
}

// Whether the last word is a usual name for steps: "train_step", "ProfilerStep", "iter".
bool IsStepName(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::string_view kWords[] = {"step", "iteration", "iter", "batch", "minibatch"};
  return lower.ends_with("profilerstep") || std::ranges::any_of(kWords, [&](std::string_view word) {
           if (!lower.ends_with(word)) return false;
           const size_t before = lower.size() - word.size();
           return before == 0 || std::isalnum(static_cast<unsigned char>(lower[before - 1])) == 0;
         });
}

double VariationOf(std::span<const double> values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const double mean = sum / static_cast<double>(values.size());
  return std::sqrt(std::max(0.0, squares / static_cast<double>(values.size()) - mean * mean)) / mean;
}

double ShareAlike(const std::vector<double>& values) {
  const double median = MedianOf(values);
  const auto alike = std::ranges::count_if(
      values, [median](double value) { return std::abs(value - median) <= kAlike * median; });
  return static_cast<double>(alike) / static_cast<double>(values.size());
}

// Share of the values that equal the one `distance` before.
double ShareSame(std::span<const uint64_t> values, size_t distance) {
  size_t same = 0;
  for (size_t i = distance; i < values.size(); ++i) same += values[i] == values[i - distance] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(values.size() - distance);
}

// The number of values after which they repeat; 1 if they don't, or if most are equal.
size_t PeriodOf(std::span<const uint64_t> values) {
  for (size_t period = 1; period <= kMaxIntervalsOfRound && values.size() >= kMinSyncRounds * period;
       ++period)
    if (ShareSame(values, period) >= kMinSameInRounds) return period;
  return 1;
}

std::string_view NameOf(Work::Kind kind) {
  constexpr std::string_view kNames[] = {"range", "sync", "kernel", "copy"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

struct StepFinder::Occurrences {
  std::vector<size_t> at;  // indices in the history
  int64_t length_ns = 0;
};

// The amount of work between consecutive occurrences: standard deviation over mean, the share of intervals
// close to the median, and the means.
struct StepFinder::Regularity {
  double variation = 0;
  double alike = 0;
  double mean_work = 0;
  double mean_ns = 0;
};

struct StepFinder::Idle {
  double total_ns = 0;
  double after_ns = 0;
};

struct StepFinder::Candidate {
  uint32_t token;
  size_t count;
  int64_t length_ns;
  Regularity regularity;
};

// The first token of each kind stands for all names beyond kMaxTokens.
StepFinder::StepFinder() {
  for (size_t kind = 0; kind < kKinds; ++kind) AddToken(static_cast<Work::Kind>(kind), "(others)");
}

void StepFinder::Ingest(const Work& work) {
  if (work.time_ns < last_work_ns_)
    ++late_;
  else
    pending_.push_back({TokenOf(work), work.shape, work.time_ns, work.length_ns});
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
  return tokens_.size() < kMaxTokens ? AddToken(work.kind, name) : static_cast<uint32_t>(work.kind);
}

// A step's signature is the sum of its pieces' signatures, so that their order doesn't matter.
uint64_t StepFinder::SignatureOf(const Piece& piece) const {
  const Token& token = tokens_[piece.token];
  return Mix(token.hash + Mix(piece.shape + static_cast<uint64_t>(token.kind)));
}

std::vector<StepSpan> StepFinder::Advance(int64_t time_ns) {
  std::vector<StepSpan> steps;
  const auto later = std::ranges::stable_partition(
      pending_, [time_ns](const Piece& piece) { return piece.time_ns < time_ns; });
  const std::span<Piece> now(pending_.begin(), later.begin());
  std::ranges::stable_sort(now, {}, &Piece::time_ns);
  for (const Piece& piece : now) Follow(piece, steps);
  pending_.erase(pending_.begin(), later.begin());
  if (!anchor_.has_value()) Choose(false, steps);
  return steps;
}

void StepFinder::Follow(const Piece& piece, std::vector<StepSpan>& steps) {
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
    step_start_ns_ = piece.time_ns;
    cut_ = false;
    has_kernels_ = false;
    signature_ = 0;
    pieces_ = 0;
  }
  has_kernels_ |= tokens_[piece.token].kind == Work::Kind::kKernel;
  if (tokens_[piece.token].kind != Work::Kind::kRange) signature_ += SignatureOf(piece);
  if (static_cast<double>(++pieces_) > kLostSteps * typical_work_ + 100) {
    anchor_.reset();
    step_start_ns_.reset();
    head_ns_.reset();
  }
}

// Syncs after copies alone (a checkpoint is written, a loss is read) belong to the step around them.
bool StepFinder::EndsStep(const Piece& piece) const {
  return piece.token == *anchor_ && (has_kernels_ || !needs_kernels_);
}

// The first step starts with its range, or with the work before its anchor if that is about as much as in
// other steps. Its signature includes its own anchor, as the previous step's anchor is missing.
void StepFinder::StartBefore(const Piece& anchor) {
  const auto pieces = static_cast<double>(pieces_ + 1);
  if (tokens_[anchor.token].kind == Work::Kind::kRange)
    step_start_ns_ = anchor.time_ns - anchor.length_ns;
  else if (pieces > typical_work_ * 0.9 && pieces < typical_work_ * 1.5)
    step_start_ns_ = head_ns_;
  cut_ = false;
  if (tokens_[anchor.token].kind != Work::Kind::kRange) signature_ += SignatureOf(anchor);
}

// Switches to a range that is named as a step if one appears while another anchor is in use.
void StepFinder::FollowNamedStep(const Piece& piece) {
  if (tokens_[*anchor_].is_step_name) return;
  ++pieces_since_named_;
  if (!tokens_[piece.token].is_step_name || named_.value_or(piece.token) != piece.token) return;
  if (!named_.has_value()) pieces_since_named_ = 0;
  named_ = piece.token;
  if (++named_seen_ < kMinNamedSteps) return;
  anchor_ = named_;
  needs_kernels_ = false;
  typical_work_ = static_cast<double>(pieces_since_named_) / static_cast<double>(kMinNamedSteps - 1);
  pieces_ = 0;
  step_start_ns_ = piece.time_ns - piece.length_ns;
  cut_ = false;
  signature_ = 0;
}

std::vector<StepSpan> StepFinder::Gap(int64_t time_ns, bool observed) {
  std::vector<StepSpan> steps = Advance(time_ns);
  if (!anchor_.has_value() && !observed) Choose(true, steps);
  step_start_ns_.reset();
  if (observed && anchor_.has_value()) step_start_ns_ = time_ns;
  cut_ = observed;
  head_ns_.reset();
  pieces_ = 0;
  signature_ = 0;
  history_.clear();
  choose_at_ = 0;
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
  return fmt::format("{} {}", NameOf(tokens_[*anchor_].kind), tokens_[*anchor_].name);
}

StepFinder::Regularity StepFinder::Measure(const Occurrences& occurrences) const {
  const std::vector<size_t>& at = occurrences.at;
  std::vector<double> work;
  for (size_t i = 1; i < at.size(); ++i) work.push_back(static_cast<double>(at[i] - at[i - 1]));
  const double intervals = static_cast<double>(work.size());
  Regularity measured{
      .variation = VariationOf(work),
      .mean_work = static_cast<double>(at.back() - at.front()) / intervals,
      .mean_ns = static_cast<double>(history_[at.back()].time_ns - history_[at.front()].time_ns) / intervals};
  // Ignore the first half if it is less regular: the program may have been warming up.
  if (work.size() / 2 >= kMinSteps)
    measured.variation = std::min(measured.variation, VariationOf(std::span(work).subspan(work.size() / 2)));
  measured.alike = ShareAlike(work);
  return measured;
}

// Chooses an anchor if the history allows it. At the end of the input, shorter histories are accepted.
void StepFinder::Choose(bool at_end, std::vector<StepSpan>& steps) {
  if (history_.size() < kMinSteps) return;
  if (!at_end &&
      (history_.size() < choose_at_ || history_.back().time_ns - history_.front().time_ns < kMinHistoryNs))
    return;
  choose_at_ = static_cast<size_t>(kHistoryGrowth * static_cast<double>(history_.size()));
  std::unordered_map<uint32_t, Occurrences> by_token;
  for (size_t i = 0; i < history_.size(); ++i) {
    Occurrences& occurrences = by_token[history_[i].token];
    occurrences.at.push_back(i);
    occurrences.length_ns += history_[i].length_ns;
  }
  std::vector<Candidate> candidates;
  bool has_rare_step_name = false;
  for (const auto& [token, occurrences] : by_token) {
    const bool named = tokens_[token].is_step_name;
    has_rare_step_name |= named && std::ssize(occurrences.at) < kMinNamedSteps;
    if (occurrences.at.size() < 2) continue;
    const Candidate candidate{token, occurrences.at.size(), occurrences.length_ns, Measure(occurrences)};
    if (candidate.regularity.mean_ns >= kMinStepNs) candidates.push_back(candidate);
  }
  // Make the choice among equals independent of the hash map's order.
  std::ranges::sort(candidates, {}, [this](const Candidate& each) { return tokens_[each.token].name; });
  const Candidate* best = BestNamedStep(candidates);
  if (best == nullptr && (!has_rare_step_name || at_end)) {
    best = BestAnchor(candidates, kMinKernelStepNs);
    const bool is_long = history_.size() > kMaxHistory / 2 ||
                         history_.back().time_ns - history_.front().time_ns >= kLongHistoryNs;
    if (best == nullptr && (is_long || at_end)) best = BestAnchor(candidates, kMinStepNs);
    if (best == nullptr || MarksByWork(*best))
      if (const Candidate* requests = EndOfRequests(candidates); requests != nullptr) best = requests;
    if (best != nullptr) best = AnchorOfRounds(candidates, *best);
  }
  if (best != nullptr) {
    anchor_ = best->token;
    needs_kernels_ = RunsKernelsBetween(*anchor_);
    has_kernels_ = false;
    typical_work_ = best->regularity.mean_work;
    pieces_ = 0;
    named_.reset();
    named_seen_ = 0;
    choose_at_ = 0;
    for (const Piece& piece : std::exchange(history_, {})) Follow(piece, steps);
  } else if (history_.size() > kMaxHistory) {
    history_.erase(history_.begin(), history_.begin() + kMaxHistory / 2);
    choose_at_ = 0;
  }
}

// The named candidate that takes most of the time: "step" rather than the "micro_batch" within it.
const StepFinder::Candidate* StepFinder::BestNamedStep(const std::vector<Candidate>& candidates) const {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates)
    if (tokens_[candidate.token].is_step_name && std::cmp_greater_equal(candidate.count, kMinNamedSteps) &&
        (best == nullptr || candidate.length_ns > best->length_ns))
      best = &candidate;
  return best;
}

// Among regular candidates that are about as frequent as the most frequent one of their kind, the one that
// takes most of the time. Ranges are preferred to syncs, these to kernels and copies, unless the preferred
// kind occurs only once in several steps.
const StepFinder::Candidate* StepFinder::BestAnchor(const std::vector<Candidate>& candidates,
                                                    double min_kernel_step_ns) const {
  const auto regular = [&](const Candidate& candidate) {
    const bool device = MarksByWork(candidate);
    if (candidate.count <= kMinSteps) return false;
    if (device && candidate.regularity.mean_ns < min_kernel_step_ns) return false;
    return candidate.regularity.variation <= kMaxVariation ||
           (!device && candidate.regularity.alike >= kMinAlike);
  };
  size_t most = 0;
  for (const Candidate& candidate : candidates)
    if (regular(candidate)) most = std::max(most, candidate.count);
  for (const Work::Kind kind :
       {Work::Kind::kRange, Work::Kind::kSync, Work::Kind::kKernel, Work::Kind::kCopy}) {
    const auto of_kind = [&](const Candidate& candidate) {
      return tokens_[candidate.token].kind == kind && regular(candidate);
    };
    size_t most_of_kind = 0;
    for (const Candidate& candidate : candidates)
      if (of_kind(candidate)) most_of_kind = std::max(most_of_kind, candidate.count);
    if (most_of_kind == 0 || most_of_kind * 4 < most) continue;
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates)
      if (of_kind(candidate) && candidate.count * 10 >= most_of_kind * 9 &&
          (best == nullptr || candidate.length_ns > best->length_ns))
        best = &candidate;
    return best;
  }
  return nullptr;
}

// Whether a kernel or copy marks the steps, rather than a range or sync.
bool StepFinder::MarksByWork(const Candidate& candidate) const {
  const Work::Kind kind = tokens_[candidate.token].kind;
  return kind == Work::Kind::kKernel || kind == Work::Kind::kCopy;
}

// The most frequent sync after which the GPU is idle, as it hardly is between two of them: a server waits for
// its next request, however much work that is. Null if there is none.
const StepFinder::Candidate* StepFinder::EndOfRequests(const std::vector<Candidate>& candidates) const {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (tokens_[candidate.token].kind != Work::Kind::kSync || candidate.count < 2 * kMinSteps ||
        candidate.regularity.mean_ns < kMinStepNs || !RunsKernelsBetween(candidate.token))
      continue;
    const Idle idle = IdleAround(candidate.token);
    if (idle.after_ns >= kMinIdleAfterRequests * idle.total_ns &&
        idle.total_ns >= kMinIdle * candidate.regularity.mean_ns * static_cast<double>(candidate.count) &&
        (best == nullptr || candidate.count > best->count))
      best = &candidate;
  }
  return best;
}

// The time without kernels and copies, and the part of it between an occurrence of `token` and the next work.
StepFinder::Idle StepFinder::IdleAround(uint32_t token) const {
  Idle idle;
  std::optional<int64_t> busy_until_ns;
  bool after = false;
  for (const Piece& piece : history_) {
    const Work::Kind kind = tokens_[piece.token].kind;
    if (piece.token == token) after = true;
    if (kind != Work::Kind::kKernel && kind != Work::Kind::kCopy) continue;
    if (busy_until_ns.has_value()) {
      const auto idle_ns =
          static_cast<double>(std::max<int64_t>(0, piece.time_ns - piece.length_ns - *busy_until_ns));
      idle.total_ns += idle_ns;
      if (after) idle.after_ns += idle_ns;
    }
    busy_until_ns = std::max(piece.time_ns, busy_until_ns.value_or(piece.time_ns));
    after = false;
  }
  return idle;
}

// A hash of the names of the work in each interval between two occurrences of `token`, without the intervals
// in which no kernels ran; the first and the last one are incomplete and left out.
std::vector<uint64_t> StepFinder::IntervalsOf(uint32_t token) const {
  std::vector<uint64_t> intervals;
  uint64_t names = 0;
  bool has_kernels = false;
  for (const Piece& piece : history_) {
    const Token& of = tokens_[piece.token];
    has_kernels |= of.kind == Work::Kind::kKernel;
    if (of.kind != Work::Kind::kRange) names += Mix(of.hash + static_cast<uint64_t>(of.kind));
    if (piece.token != token || !has_kernels) continue;
    intervals.push_back(std::exchange(names, 0));
    has_kernels = false;
  }
  if (!intervals.empty()) intervals.erase(intervals.begin());
  return intervals;
}

// Whether kernels ran in most intervals between two syncs. Other kinds of anchors end a step by themselves.
bool StepFinder::RunsKernelsBetween(uint32_t token) const {
  if (tokens_[token].kind != Work::Kind::kSync) return false;
  const auto occurrences = std::ranges::count(history_, token, &Piece::token);
  return static_cast<double>(IntervalsOf(token).size() + 1) >= kMinAlike * static_cast<double>(occurrences);
}

// If the intervals of the best anchor take turns, the candidate that occurs once in a round and takes most of
// the time; else the best anchor itself.
const StepFinder::Candidate* StepFinder::AnchorOfRounds(const std::vector<Candidate>& candidates,
                                                        const Candidate& best) const {
  std::vector<uint64_t> intervals = IntervalsOf(best.token);
  // The first half may be warm-up.
  const size_t period = PeriodOf(std::span(intervals).subspan(intervals.size() / 2));
  if (period == 1) return &best;
  const double rounds = static_cast<double>(intervals.size() + 1) / static_cast<double>(period);
  const Candidate* of_rounds = &best;
  for (const Candidate& candidate : candidates)
    if (std::abs(static_cast<double>(candidate.count) - rounds) <= std::max(1.0, 0.1 * rounds) &&
        candidate.regularity.variation <= kMaxVariation &&
        (of_rounds == &best || candidate.length_ns > of_rounds->length_ns))
      of_rounds = &candidate;
  return of_rounds;
}

StepSpan StepFinder::Close(int64_t end_ns) {
  if (cut_) return {.type = {}, .start_ns = *step_start_ns_, .end_ns = end_ns, .cut = true};
  return {.type = TypeOf(signature_), .start_ns = *step_start_ns_, .end_ns = end_ns};
}

Id128 StepFinder::TypeOf(uint64_t fine) {
  ++typed_;
  if (fine_types_.size() <= kMaxTypes) ++fine_types_[fine];
  int64_t recurring = 0;
  for (const auto& [type, count] : fine_types_)
    if (count >= 3) recurring += count;
  const bool useful = typed_ < kTypesAfter || recurring * 2 >= typed_;
  return IdHasher("step").Add(tokens_[*anchor_].name).Add(useful ? fine : 0).Finish();
}

}  // namespace gpusonde::diagnose
