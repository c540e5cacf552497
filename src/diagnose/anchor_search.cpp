// SPDX-License-Identifier: Apache-2.0
#include "diagnose/anchor_search.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/order_statistics.h"
#include "diagnose/step_table.h"

namespace gpusonde::diagnose {
namespace {

// The name of copies to the GPU.
constexpr std::string_view kInput = "htod";

bool IsGpuWork(Work::Kind kind) { return kind == Work::Kind::kKernel || kind == Work::Kind::kCopy; }

// Of values that are added one by one.
class Moments {
 public:
  void Add(double value) {
    ++count_;
    sum_ += value;
    squares_ += value * value;
  }
  double mean() const { return sum_ / count_; }
  double variation() const { return std::sqrt(std::max(0.0, squares_ / count_ - mean() * mean())) / mean(); }

 private:
  double count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

double ShareAlike(const std::vector<double>& values) {
  const double median = MedianOf(values);
  const auto alike = std::ranges::count_if(values, [median](double value) {
    return std::abs(value - median) <= kStepTable.anchor.alike * median;
  });
  return static_cast<double>(alike) / static_cast<double>(values.size());
}

// Share of the values that equal the one `distance` before.
double ShareSame(std::span<const uint64_t> values, size_t distance) {
  if (values.size() <= distance) return 0;
  size_t same = 0;
  for (size_t i = distance; i < values.size(); ++i) same += values[i] == values[i - distance] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(values.size() - distance);
}

// Without the first half, which may be warm-up.
std::span<const uint64_t> AfterWarmUp(std::span<const uint64_t> values) {
  return values.subspan(values.size() / 2);
}

// Whether work occurs as often as there are rounds of work, give or take.
bool AreAlike(size_t occurrences, size_t rounds) {
  const auto expected = static_cast<double>(rounds);
  return std::abs(static_cast<double>(occurrences) - expected) <=
         std::max(1.0, kStepTable.anchor.rounds_alike * expected);
}

// The number of values after which they repeat; 1 if they don't, or if most are equal.
size_t PeriodOf(std::span<const uint64_t> values) {
  for (size_t period = 1; period <= kStepTable.anchor.max_intervals_of_round &&
                          values.size() >= kStepTable.anchor.min_rounds * period;
       ++period)
    if (ShareSame(values, period) >= kStepTable.anchor.min_same_in_rounds) return period;
  return 1;
}

}  // namespace

struct AnchorSearch::Occurrences {
  std::vector<uint32_t> at;  // indices in the history
  int64_t length_ns = 0;
};

// The number of intervals between consecutive occurrences, and their mean length.
struct AnchorSearch::Frequency {
  size_t intervals = 0;
  double mean_ns = 0;  // 0: not known
};

// The amount of work in these intervals: standard deviation over mean, the share of intervals close to the
// median (of ranges and syncs), and the mean; and their median length (of kernels and copies).
struct AnchorSearch::Regularity : Frequency {
  double variation = 0;
  double alike = 0;
  double mean_work = 0;
  double median_ns = 0;
};

// Hashes of the names of the work in each interval between two occurrences, of those in which kernels ran.
struct AnchorSearch::Intervals {
  size_t ended = 0;              // occurrences before which kernels ran
  std::vector<uint64_t> hashes;  // in the longest time without a break
};

struct AnchorSearch::Idle {
  double total_ns = 0;
  double after_ns = 0;
};

struct AnchorSearch::Candidate {
  uint32_t token;
  size_t count;
  int64_t length_ns;
  Regularity regularity;
};

std::optional<Anchor> AnchorSearch::Find(History state) const {
  if (history_.size() < kStepTable.anchor.min_steps) return std::nullopt;
  std::unordered_map<uint32_t, Occurrences> by_token;
  for (size_t i = 0; i < history_.size(); ++i) {
    Occurrences& occurrences = by_token[history_[i].token];
    occurrences.at.push_back(static_cast<uint32_t>(i));
    occurrences.length_ns += history_[i].length_ns;
  }
  std::vector<Candidate> candidates, frequent;
  bool has_rare_step_name = false;
  for (const auto& [token, occurrences] : by_token) {
    const bool named = tokens_[token].is_step_name;
    has_rare_step_name |= named && std::ssize(occurrences.at) < kStepTable.anchor.min_named;
    const Frequency frequency = FrequencyOf(occurrences);
    if (frequency.mean_ns < kStepTable.anchor.min_loop_ns) continue;
    const Candidate candidate{token, occurrences.at.size(), occurrences.length_ns,
                              Measure(occurrences, frequency, tokens_[token].kind)};
    const Regularity& regularity = candidate.regularity;
    if (regularity.mean_ns >= kStepTable.anchor.min_step_ns)
      candidates.push_back(candidate);
    else if (regularity.variation <= kStepTable.anchor.max_variation)
      frequent.push_back(candidate);
  }
  // Make the choice among equals independent of the hash map's order.
  for (std::vector<Candidate>* all : {&candidates, &frequent})
    std::ranges::sort(*all, {}, [this](const Candidate& each) { return tokens_[each.token].name; });
  const Candidate* best = BestNamedStep(candidates);
  const bool is_growing = state == History::kYoung || state == History::kGrowing;
  if (best == nullptr && (!has_rare_step_name || state == History::kComplete)) {
    best = BestAnchor(candidates, kStepTable.anchor.min_kernel_step_ns);
    if (best == nullptr && !is_growing) best = BestAnchor(candidates, kStepTable.anchor.min_step_ns);
    if (best == nullptr || MarksByWork(*best))
      if (const Candidate* requests = EndOfRequests(candidates); requests != nullptr) best = requests;
    if (best != nullptr) {
      const Candidate* sync = SyncAroundLayers(candidates, *best);
      best = is_growing && IsTooEarly(*best, sync, state) ? nullptr : WholeStep(candidates, *best, sync);
    }
    if (best == nullptr && !is_growing) best = BestAnchor(frequent, kStepTable.anchor.min_loop_ns);
  }
  if (best == nullptr) return std::nullopt;
  const double occurrences = best->regularity.mean_ns >= kStepTable.anchor.min_step_ns
                                 ? 1
                                 : std::ceil(kStepTable.anchor.group_ns / best->regularity.mean_ns);
  return Anchor{.token = best->token,
                .occurrences = static_cast<int>(occurrences),
                .typical_work = occurrences * best->regularity.mean_work,
                .needs_kernels = RunsKernelsBetween(best->token)};
}

// Calls visit(piece, next piece) for each two occurrences between which observation wasn't interrupted.
template <class Visit>
void AnchorSearch::ForEachInterval(const Occurrences& occurrences, Visit visit) const {
  const std::vector<uint32_t>& at = occurrences.at;
  auto next = breaks_.begin();
  for (size_t i = 1; i < at.size(); ++i) {
    while (next != breaks_.end() && next->at <= at[i - 1]) ++next;
    if (next == breaks_.end() || next->at > at[i]) visit(at[i - 1], at[i]);
  }
}

// Whether there is a break before this piece, the next one; `next` is the number of breaks that were passed.
bool AnchorSearch::BreaksAt(size_t piece, size_t& next) const {
  if (next == breaks_.size() || breaks_[next].at != piece) return false;
  ++next;
  return true;
}

AnchorSearch::Frequency AnchorSearch::FrequencyOf(const Occurrences& occurrences) const {
  size_t intervals = 0;
  int64_t total_ns = 0;
  ForEachInterval(occurrences, [&](uint32_t from, uint32_t to) {
    ++intervals;
    total_ns += history_[to].time_ns - history_[from].time_ns;
  });
  if (intervals == 0) return {};
  return {.intervals = intervals, .mean_ns = static_cast<double>(total_ns) / static_cast<double>(intervals)};
}

// Takes memory for as little as possible: histories are long, and the pages of a large block are new each
// time.
AnchorSearch::Regularity AnchorSearch::Measure(const Occurrences& occurrences, const Frequency& frequency,
                                               Work::Kind kind) const {
  const bool is_gpu_work = IsGpuWork(kind);
  std::vector<double> values;  // times of GPU work, amounts of work between others
  values.reserve(frequency.intervals);
  Moments all, second_half;
  ForEachInterval(occurrences, [&](uint32_t from, uint32_t to) {
    const auto work = static_cast<double>(to - from);
    all.Add(work);
    if (values.size() >= frequency.intervals / 2) second_half.Add(work);
    values.push_back(is_gpu_work ? static_cast<double>(history_[to].time_ns - history_[from].time_ns) : work);
  });
  Regularity measured{frequency};
  measured.variation = all.variation();
  measured.mean_work = all.mean();
  // Ignore the first half if it is less regular: the program may have been warming up.
  if (frequency.intervals / 2 >= kStepTable.anchor.min_steps)
    measured.variation = std::min(measured.variation, second_half.variation());
  if (is_gpu_work)
    measured.median_ns = MedianOf(std::move(values));
  else
    measured.alike = ShareAlike(values);
  return measured;
}

// The named candidate that takes most of the time: "step" rather than the "micro_batch" within it.
const AnchorSearch::Candidate* AnchorSearch::BestNamedStep(const std::vector<Candidate>& candidates) const {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates)
    if (tokens_[candidate.token].is_step_name &&
        std::cmp_greater_equal(candidate.count, kStepTable.anchor.min_named.value) &&
        (best == nullptr || candidate.length_ns > best->length_ns))
      best = &candidate;
  return best;
}

// Among regular candidates that are about as frequent as the most frequent one of their kind, the one that
// takes most of the time. Ranges are preferred to syncs, these to kernels and copies, unless the preferred
// kind occurs only once in several steps.
const AnchorSearch::Candidate* AnchorSearch::BestAnchor(const std::vector<Candidate>& candidates,
                                                        double min_kernel_step_ns) const {
  const auto regular = [&](const Candidate& candidate) {
    const bool device = MarksByWork(candidate);
    if (candidate.regularity.intervals < kStepTable.anchor.min_steps) return false;
    // The median: between a few requests a second, the mean is that of the kernels and of the waits between.
    if (device && candidate.regularity.median_ns < min_kernel_step_ns) return false;
    return candidate.regularity.variation <= kStepTable.anchor.max_variation ||
           (!device && candidate.regularity.alike >= kStepTable.anchor.min_alike);
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
    if (most_of_kind == 0 || most_of_kind * kStepTable.anchor.max_times_rarer < most) continue;
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates)
      if (of_kind(candidate) &&
          static_cast<double>(candidate.count) >=
              kStepTable.anchor.as_frequent * static_cast<double>(most_of_kind) &&
          (best == nullptr || candidate.length_ns > best->length_ns))
        best = &candidate;
    return best;
  }
  return nullptr;
}

// Whether a kernel or copy marks the steps, rather than a range or sync.
bool AnchorSearch::MarksByWork(const Candidate& candidate) const {
  return IsGpuWork(tokens_[candidate.token].kind);
}

// The most frequent sync after which the GPU is idle: a server waits for its next request, however much work
// that is. Null if there is none.
const AnchorSearch::Candidate* AnchorSearch::EndOfRequests(const std::vector<Candidate>& candidates) const {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates)
    if (tokens_[candidate.token].kind == Work::Kind::kSync &&
        candidate.count >= 2 * kStepTable.anchor.min_steps &&
        candidate.regularity.mean_ns >= kStepTable.anchor.min_step_ns &&
        (best == nullptr || candidate.count > best->count) && IsFollowedByIdleGpu(candidate))
      best = &candidate;
  return best;
}

// Whether the GPU is idle after this sync, as it hardly is between two of them.
bool AnchorSearch::IsFollowedByIdleGpu(const Candidate& sync) const {
  if (!RunsKernelsBetween(sync.token)) return false;
  const Idle idle = IdleAround(sync.token);
  return idle.after_ns >= kStepTable.anchor.min_idle_after_requests * idle.total_ns &&
         idle.total_ns >=
             kStepTable.anchor.min_idle * sync.regularity.mean_ns * static_cast<double>(sync.count);
}

// The time without kernels and copies, and the part of it between an occurrence of `token` and the next work.
AnchorSearch::Idle AnchorSearch::IdleAround(uint32_t token) const {
  Idle idle;
  std::optional<int64_t> busy_until_ns;
  bool after = false;
  for (size_t i = 0, next_break = 0; i < history_.size(); ++i) {
    const WorkPiece& piece = history_[i];
    if (BreaksAt(i, next_break)) {
      busy_until_ns.reset();
      after = false;
    }
    if (piece.token == token) after = true;
    if (!IsGpuWork(tokens_[piece.token].kind)) continue;
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

// The intervals of `token`, without those that are incomplete: the first one, and the first after a break.
AnchorSearch::Intervals AnchorSearch::IntervalsOf(uint32_t token) const {
  Intervals intervals;
  std::vector<uint64_t> hashes;  // since the last break
  uint64_t names = 0;
  bool is_whole = false, has_kernels = false;
  const auto keep_longest = [&] {
    if (hashes.size() > intervals.hashes.size()) std::swap(hashes, intervals.hashes);
    hashes.clear();
  };
  for (size_t i = 0, next_break = 0; i < history_.size(); ++i) {
    if (BreaksAt(i, next_break)) {
      keep_longest();
      names = 0;
      is_whole = has_kernels = false;
    }
    const WorkToken& of = tokens_[history_[i].token];
    has_kernels |= of.kind == Work::Kind::kKernel;
    if (of.kind != Work::Kind::kRange) names += Mix(of.hash + static_cast<uint64_t>(of.kind));
    if (history_[i].token != token || !has_kernels) continue;
    ++intervals.ended;
    if (is_whole) hashes.push_back(names);
    names = 0;
    is_whole = true;
    has_kernels = false;
  }
  keep_longest();
  return intervals;
}

// Whether kernels ran in most intervals between two syncs. Other kinds of anchors end a step by themselves.
bool AnchorSearch::RunsKernelsBetween(uint32_t token) const {
  if (tokens_[token].kind != Work::Kind::kSync) return false;
  const auto occurrences = std::ranges::count(history_, token, &WorkPiece::token);
  return static_cast<double>(IntervalsOf(token).ended) >=
         kStepTable.anchor.min_alike * static_cast<double>(occurrences);
}

// The sync between whose occurrences a kernel or copy recurs while input is copied to the GPU once, or a few
// times, as in the forward pass of a model of equal layers, or after which the GPU is idle. Null if there is
// none.
const AnchorSearch::Candidate* AnchorSearch::SyncAroundLayers(const std::vector<Candidate>& candidates,
                                                              const Candidate& layer) const {
  if (!MarksByWork(layer)) return nullptr;
  const auto input = std::ranges::find_if(candidates, [this](const Candidate& candidate) {
    return tokens_[candidate.token].kind == Work::Kind::kCopy && tokens_[candidate.token].name == kInput;
  });
  const auto has_input = [&](const Candidate& sync) {
    return input != candidates.end() && 2 * input->count <= layer.count && sync.count <= input->count + 1 &&
           input->count <= kStepTable.anchor.max_times_rarer * sync.count;
  };
  const Candidate* found = nullptr;
  for (const Candidate& sync : candidates)
    if (tokens_[sync.token].kind == Work::Kind::kSync && 2 * sync.count <= layer.count &&
        (found == nullptr || sync.count > found->count) && (has_input(sync) || IsFollowedByIdleGpu(sync)))
      found = &sync;
  return found;
}

// Whether this anchor occurs several times in what a longer history may show to be one step. `sync`: around
// its layers, if any.
bool AnchorSearch::IsTooEarly(const Candidate& best, const Candidate* sync, History state) const {
  if (state == History::kYoung && MarksByWork(best)) return true;
  if (sync != nullptr && sync->regularity.intervals < kStepTable.anchor.min_steps) return true;
  if (!breaks_.empty()) return false;  // no more rounds in a row than these may be observed
  const Intervals intervals = IntervalsOf(best.token);
  return intervals.hashes.size() <
             2 * kStepTable.anchor.min_rounds * kStepTable.anchor.max_intervals_of_round &&
         ShareSame(AfterWarmUp(intervals.hashes), 1) < kStepTable.anchor.min_same_in_rounds;
}

// What marks the whole step if the best anchor occurs several times in it; else the best anchor itself.
// `sync`: around its layers, if any.
const AnchorSearch::Candidate* AnchorSearch::WholeStep(const std::vector<Candidate>& candidates,
                                                       const Candidate& best, const Candidate* sync) const {
  if (sync != nullptr && sync->regularity.intervals >= kStepTable.anchor.min_rounds &&
      sync->regularity.variation <= kStepTable.anchor.max_variation)
    return sync;
  return AnchorOfRounds(candidates, best);
}

// If the intervals of the best anchor take turns, the candidate that occurs once in a round and takes most of
// the time; else the best anchor itself.
const AnchorSearch::Candidate* AnchorSearch::AnchorOfRounds(const std::vector<Candidate>& candidates,
                                                            const Candidate& best) const {
  const Intervals intervals = IntervalsOf(best.token);
  const size_t period = PeriodOf(AfterWarmUp(intervals.hashes));
  if (period == 1) return &best;
  const size_t rounds = intervals.ended / period;
  const Candidate* of_rounds = &best;
  for (const Candidate& candidate : candidates)
    if (AreAlike(candidate.count, rounds) &&
        candidate.regularity.variation <= kStepTable.anchor.max_variation &&
        (of_rounds == &best || candidate.length_ns > of_rounds->length_ns))
      of_rounds = &candidate;
  return of_rounds;
}

}  // namespace gpusonde::diagnose
