// SPDX-License-Identifier: Apache-2.0
#include "analyze/findings/collective_match.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/order_statistics.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kMaxShift = 32;
constexpr int64_t kMaxSamples = 64;
// A shift has to leave so many visits; with fewer, any two ranks fit.
constexpr int64_t kMinShifted = 8;
// Ends of one collective on different ranks are a few µs apart; those of different groups, whose steps vary
// independently, more.
constexpr int64_t kTogetherNs = 10'000;
// Above this, fitting each pair of ranks takes longer than reading their traces; then all are compared with
// the first.
constexpr size_t kMaxPairedRanks = 64;

bool IsSendOrReceive(std::string_view kernel) { return kernel.find("SendRecv") != std::string_view::npos; }

// A communication kernel of a rank, with its sequence number in its group.
struct Numbered {
  int64_t sequence = 0;
  Visit visit;
};

// Kernels that may belong together: of one process group, 0 if unknown, and one name.
struct Kind {
  uint64_t group = 0;
  std::string_view name;

  auto operator<=>(const Kind&) const = default;
};

struct Candidates {
  importers::ProcessGroup group;                  // with what the traces of all its ranks say
  std::map<size_t, std::vector<Numbered>> ranks;  // in the order of their starts
};

std::map<Kind, Candidates> Collect(const Job& job) {
  std::map<Kind, Candidates> kinds;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const JobRank& of = job.ranks[rank];
    for (size_t index = 0; index < of.result.collectives.size(); ++index) {
      const Collective& one = of.result.collectives[index];
      const importers::ProcessGroup* group = nullptr;
      if (one.collective != 0) {
        const auto known = of.groups.find(importers::GroupOf(one.collective));
        if (known == of.groups.end() || known->second.group.identity == 0)
          continue;  // it may be one of several
        group = &known->second.group;
      }
      Candidates& candidates = kinds[{group != nullptr ? group->identity : 0, job.names[one.name]}];
      if (group != nullptr) {
        if (candidates.ranks.empty()) candidates.group = *group;
        candidates.group.size = std::max(candidates.group.size, group->size);
        candidates.group.numbered = group->numbered;
      }
      candidates.ranks[rank].push_back({.sequence = importers::SequenceOf(one.collective),
                                        .visit = {.start_ns = one.start_ns + of.epoch_offset_ns,
                                                  .end_ns = one.end_ns + of.epoch_offset_ns,
                                                  .index = index}});
    }
  }
  return kinds;
}

std::vector<Visit> VisitsOf(const std::vector<Numbered>& numbered) {
  std::vector<Visit> visits;
  visits.reserve(numbered.size());
  for (const Numbered& one : numbered) visits.push_back(one.visit);
  return visits;
}

// Replaces the lowest 16 bits of sequence numbers by whole ones, near the previous one, and the first near
// `base`.
void Unwrap(std::vector<Numbered>& numbered, int64_t base) {
  for (Numbered& one : numbered) {
    one.sequence = base + static_cast<int16_t>(one.sequence - base);
    base = one.sequence;
  }
}

// Several kernels may have one number: the first of every rank belong together, and so on.
using BySequence = std::map<std::pair<int64_t, size_t>, Visit>;

BySequence Sort(const std::vector<Numbered>& numbered) {
  BySequence sorted;
  std::map<int64_t, size_t> times;
  for (const Numbered& one : numbered) sorted[{one.sequence, times[one.sequence]++}] = one.visit;
  return sorted;
}

MatchedCollectives MatchNumbered(std::map<size_t, std::vector<Numbered>>& ranks) {
  MatchedCollectives matched;
  std::vector<BySequence> sorted;
  const int64_t base = ranks.begin()->second.front().sequence;
  for (auto& [rank, numbered] : ranks) {
    Unwrap(numbered, base);
    matched.ranks.push_back(rank);
    sorted.push_back(Sort(numbered));
  }
  matched.visits.resize(sorted.size());
  for (const auto& [key, visit] : sorted.front()) {
    if (!std::ranges::all_of(sorted, [&key](const BySequence& of) { return of.contains(key); })) continue;
    for (size_t i = 0; i < sorted.size(); ++i) matched.visits[i].push_back(sorted[i].at(key));
  }
  return matched;
}

MatchedCollectives MatchInOrder(const std::vector<size_t>& ranks,
                                const std::map<size_t, std::vector<Visit>>& visits) {
  MatchedCollectives matched{.ranks = ranks};
  const std::vector<Visit>& first = visits.at(ranks.front());
  std::vector<int64_t> shifts;
  int64_t begin = 0;  // the range of the first rank's that all ranks have
  auto end = static_cast<int64_t>(first.size());
  for (const size_t rank : ranks) {
    const std::vector<Visit>& list = visits.at(rank);
    shifts.push_back(rank == ranks.front() ? 0 : BestFit(first, list).shift);
    begin = std::max(begin, -shifts.back());
    end = std::min(end, static_cast<int64_t>(list.size()) - shifts.back());
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::vector<Visit>& list = visits.at(ranks[i]);
    std::vector<Visit>& common = matched.visits.emplace_back();
    for (int64_t at = begin; at < end; ++at) common.push_back(list[static_cast<size_t>(at + shifts[i])]);
  }
  return matched;
}

// Two ranks that may be in one group.
struct Pair {
  int64_t residual_ns = 0;
  size_t a = 0;  // indices of ranks
  size_t b = 0;
  int64_t duration_ns = 0;  // the typical one of the rank with the shorter kernels
};

int64_t TypicalDuration(const std::vector<Visit>& visits) {
  std::vector<int64_t> durations;
  for (const Visit& visit : visits) durations.push_back(visit.end_ns - visit.start_ns);
  return LowerMedianOf(durations);
}

std::vector<Pair> PairsOf(const std::map<size_t, std::vector<Visit>>& visits) {
  std::vector<std::pair<const std::vector<Visit>*, int64_t>> lists;
  for (const auto& [rank, list] : visits) lists.emplace_back(&list, TypicalDuration(list));
  std::vector<Pair> pairs;
  for (size_t a = 0; a < (lists.size() <= kMaxPairedRanks ? lists.size() : 1); ++a)
    for (size_t b = a + 1; b < lists.size(); ++b)
      pairs.push_back({.residual_ns = BestFit(*lists[a].first, *lists[b].first).residual_ns,
                       .a = a,
                       .b = b,
                       .duration_ns = std::min(lists[a].second, lists[b].second)});
  std::ranges::sort(pairs, {}, [](const Pair& pair) { return std::tuple(pair.residual_ns, pair.a, pair.b); });
  return pairs;
}

// Groups of ranks whose kernels end together: pairs join, closest first, if they fit about as well as those
// that are together already; two single ranks, if they fit within an eighth of a kernel.
std::vector<std::vector<size_t>> FindGroups(const std::map<size_t, std::vector<Visit>>& visits) {
  std::vector<size_t> group(visits.size());
  std::iota(group.begin(), group.end(), size_t{0});
  std::vector<std::optional<int64_t>> spread(visits.size());  // of groups: their largest residual
  for (const Pair& pair : PairsOf(visits)) {
    const size_t a = group[pair.a];
    const size_t b = group[pair.b];
    if (a == b) continue;
    const bool single = !spread[a].has_value() && !spread[b].has_value();
    const int64_t together_ns = std::max(spread[a].value_or(0), spread[b].value_or(0));
    if (pair.residual_ns > std::max(kTogetherNs, single ? pair.duration_ns / 8 : 4 * together_ns)) continue;
    std::ranges::replace(group, b, a);
    spread[a] = pair.residual_ns;
  }
  std::map<size_t, std::vector<size_t>> members;
  size_t index = 0;
  for (const auto& [rank, list] : visits) members[group[index++]].push_back(rank);
  std::vector<std::vector<size_t>> groups;
  for (auto& [number, ranks] : members) groups.push_back(std::move(ranks));
  return groups;
}

std::vector<MatchedCollectives> Match(const Kind& kind, Candidates& candidates) {
  if (candidates.group.numbered) return {MatchNumbered(candidates.ranks)};
  std::map<size_t, std::vector<Visit>> visits;
  std::vector<size_t> ranks;
  for (const auto& [rank, numbered] : candidates.ranks) {
    visits.emplace(rank, VisitsOf(numbered));
    ranks.push_back(rank);
  }
  if (kind.group != 0 && !IsSendOrReceive(kind.name)) return {MatchInOrder(ranks, visits)};
  std::vector<MatchedCollectives> matched;
  for (const std::vector<size_t>& group : FindGroups(visits)) matched.push_back(MatchInOrder(group, visits));
  return matched;
}

}  // namespace

int64_t QuartileOf(std::vector<int64_t>& values, size_t quarters) {
  return values.empty() ? 0 : ValueOfRank(values, (values.size() - 1) * quarters / 4);
}

Fit FitOf(std::vector<int64_t>& differences) {
  Fit fit{.offset_ns = LowerMedianOf(differences)};
  for (int64_t& difference : differences) difference = std::abs(difference - fit.offset_ns);
  fit.residual_ns = QuartileOf(differences, 3);
  return fit;
}

Fit BestFit(std::span<const Visit> a, std::span<const Visit> b) {
  const auto size_a = static_cast<int64_t>(a.size());
  const auto size_b = static_cast<int64_t>(b.size());
  std::vector<Fit> fits;
  std::vector<int64_t> differences;
  for (int64_t shift = -kMaxShift; shift <= kMaxShift; ++shift) {
    const int64_t begin = std::max<int64_t>(0, -shift);
    const int64_t count = std::min(size_a, size_b - shift) - begin;
    if (count < 1 || (shift != 0 && (count < kMinShifted || 2 * count < std::min(size_a, size_b)))) continue;
    differences.clear();
    const int64_t samples = std::min(count, kMaxSamples);
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t at = begin + i * count / samples;
      differences.push_back(b[static_cast<size_t>(at + shift)].end_ns - a[static_cast<size_t>(at)].end_ns);
    }
    fits.push_back(FitOf(differences));
    fits.back().shift = shift;
  }
  const int64_t least = std::ranges::min_element(fits, {}, &Fit::residual_ns)->residual_ns;
  std::erase_if(fits, [least](const Fit& fit) { return fit.residual_ns > 2 * least + 1'000; });
  return *std::ranges::min_element(fits, {}, [](const Fit& fit) {
    return std::tuple(std::abs(fit.offset_ns), std::abs(fit.shift), fit.shift);
  });
}

std::vector<MatchedCollectives> MatchCollectives(const Job& job) {
  std::vector<MatchedCollectives> all;
  for (auto& [kind, candidates] : Collect(job)) {
    const int64_t whole =
        candidates.group.size > 0 ? candidates.group.size : static_cast<int64_t>(job.ranks.size());
    for (MatchedCollectives& matched : Match(kind, candidates)) {
      const bool partial = IsSendOrReceive(kind.name) && static_cast<int64_t>(matched.ranks.size()) != whole;
      if (matched.ranks.size() < 2 || matched.visits.front().empty() || partial) continue;
      matched.group = candidates.group;
      all.push_back(std::move(matched));
    }
  }
  return all;
}

}  // namespace gpusonde::analyze
