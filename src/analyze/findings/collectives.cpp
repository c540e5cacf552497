// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/findings/bandwidth.h"
#include "analyze/findings/collective_match.h"
#include "analyze/findings/job.h"
#include "analyze/stats/inference.h"

namespace gpusonde::analyze {
namespace {

// Being last counts only if another rank waited noticeably.
constexpr int64_t kNoticeableNs = 1'000;
// A straggler costs at least this share of its rank's span.
constexpr double kMinDelayShare = 0.01;

// How far one rank's clock is ahead of another's. An offset that isn't larger than its own uncertainty, or
// that brings ends no closer together, is none.
struct ClockDifference {
  int64_t offset_ns = 0;
  int64_t residual_ns = 0;  // the median distance of ends that remains

  static ClockDifference Of(std::vector<int64_t> differences) {
    std::vector<int64_t> distances;
    for (const int64_t difference : differences) distances.push_back(std::abs(difference));
    const int64_t before_ns = LowerMedianOf(distances);
    const int64_t offset_ns = LowerMedianOf(differences);
    for (int64_t& difference : differences) difference = std::abs(difference - offset_ns);
    const int64_t after_ns = LowerMedianOf(differences);
    if (after_ns >= before_ns || after_ns >= std::abs(offset_ns)) return {0, before_ns};
    return {offset_ns, after_ns};
  }
};

// The clocks of ranks, from the ends of their common collectives.
class Clocks {
 public:
  explicit Clocks(size_t ranks) : clocks_(ranks) {}

  void Add(const MatchedCollectives& matched) {
    for (size_t i = 1; i < matched.ranks.size(); ++i) {
      std::vector<int64_t>& differences = differences_[{matched.ranks.front(), matched.ranks[i]}];
      for (size_t at = 0; at < matched.visits[i].size(); ++at)
        differences.push_back(matched.visits[i][at].end_ns - matched.visits.front()[at].end_ns);
    }
  }

  // Sets each clock to that of the first rank that it is connected with, along the way with the smallest sum
  // of residuals (Dijkstra).
  void Finish() {
    std::vector<std::vector<std::pair<size_t, ClockDifference>>> to(clocks_.size());
    for (const auto& [ranks, differences] : differences_) {
      const ClockDifference found = ClockDifference::Of(differences);
      to[ranks.first].emplace_back(ranks.second, found);
      to[ranks.second].emplace_back(ranks.first, ClockDifference{-found.offset_ns, found.residual_ns});
    }
    for (size_t root = 0; root < clocks_.size(); ++root) {
      if (to[root].empty() || clocks_[root].has_value()) continue;
      if (!first_root_.has_value()) first_root_ = root;
      std::set<std::tuple<int64_t, size_t, int64_t>> open = {{0, root, 0}};  // residual, rank, offset
      while (!open.empty()) {
        const auto [residual_ns, rank, offset_ns] = *open.begin();
        open.erase(open.begin());
        if (clocks_[rank].has_value()) continue;
        clocks_[rank] = {.root = root, .difference = {offset_ns, residual_ns}};
        for (const auto& [other, step] : to[rank])
          if (!clocks_[other].has_value())
            open.emplace(residual_ns + step.residual_ns, other, offset_ns + step.offset_ns);
      }
    }
  }

  ClockDifference DifferenceOf(size_t rank) const {
    return clocks_[rank].has_value() ? clocks_[rank]->difference : ClockDifference{};
  }
  // The offsets to the clock of the first rank, of the ranks that are connected with it.
  std::vector<std::optional<int64_t>> Offsets() const {
    std::vector<std::optional<int64_t>> offsets;
    for (const std::optional<Clock>& clock : clocks_)
      offsets.push_back(clock.has_value() && clock->root == first_root_
                            ? std::optional(clock->difference.offset_ns)
                            : std::nullopt);
    return offsets;
  }

 private:
  struct Clock {
    size_t root = 0;
    ClockDifference difference;
  };
  std::map<std::pair<size_t, size_t>, std::vector<int64_t>> differences_;
  std::vector<std::optional<Clock>> clocks_;
  std::optional<size_t> first_root_;
};

// How far the ends of most of a group's collectives are apart, without the offsets of clocks.
int64_t ResidualOf(const MatchedCollectives& matched) {
  int64_t largest = 0;
  for (size_t i = 1; i < matched.ranks.size(); ++i) {
    std::vector<int64_t> differences;
    for (size_t at = 0; at < matched.visits[i].size(); ++at)
      differences.push_back(matched.visits[i][at].end_ns - matched.visits.front()[at].end_ns);
    largest = std::max(largest, FitOf(differences).residual_ns);
  }
  return largest;
}

class Comparison {
 public:
  Comparison(const Job& job, bool with_waits)
      : job_(job), lines_(job.ranks.size()), expected_last_(job.ranks.size()) {
    if (with_waits) waits_.resize(job.ranks.size());
    for (size_t i = 0; i < lines_.size(); ++i) lines_[i].rank = job.ranks[i].number;
  }

  // `residual_ns`: shorter waits are not distinguishable from none.
  void Add(const MatchedCollectives& matched, int64_t residual_ns) {
    const size_t count = matched.visits.front().size();
    for (size_t at = 0; at < count; ++at) AddOne(matched, at, residual_ns);
    for (const size_t rank : matched.ranks)
      expected_last_[rank] += static_cast<double>(count) / static_cast<double>(matched.ranks.size());
  }

  std::vector<std::vector<CollectiveWait>> TakeWaits() {
    for (std::vector<CollectiveWait>& of_rank : waits_)
      std::ranges::sort(of_rank, {}, &CollectiveWait::start_ns);
    return std::move(waits_);
  }

  std::vector<CollectiveLine> Finish(const Clocks& clocks) && {
    std::vector<double> p;
    for (size_t i = 0; i < lines_.size(); ++i) {
      CollectiveLine& line = lines_[i];
      const ClockDifference clock = clocks.DifferenceOf(i);
      line.clock_offset_ns = clock.offset_ns;
      line.clock_residual_ns = clock.residual_ns;
      const double n = static_cast<double>(line.matched);
      const double share = n > 0 ? expected_last_[i] / n : 0;
      const double deviation = std::sqrt(n * share * (1 - share));
      p.push_back(line.matched >= kMinSamples && deviation > 0
                      ? NormalTail((static_cast<double>(line.last) - n * share) / deviation)
                      : 1);
    }
    const std::vector<bool> significant = Significant(p);
    for (size_t i = 0; i < lines_.size(); ++i) {
      const auto span = static_cast<double>(job_.ranks[i].result.timeline.span_ns());
      lines_[i].straggler =
          significant[i] && static_cast<double>(lines_[i].delayed_ns) >= kMinDelayShare * span;
    }
    std::erase_if(lines_, [](const CollectiveLine& line) { return line.matched == 0; });
    return std::move(lines_);
  }

 private:
  // All ranks leave a collective together, so the last to arrive spent the least time in it. That needs no
  // common clock.
  void AddOne(const MatchedCollectives& matched, size_t at, int64_t residual_ns) {
    const auto duration = [&](size_t i) {
      return matched.visits[i][at].end_ns - matched.visits[i][at].start_ns;
    };
    size_t last = 0;
    int64_t longest = duration(0);
    for (size_t i = 1; i < matched.ranks.size(); ++i) {
      if (duration(i) < duration(last)) last = i;
      longest = std::max(longest, duration(i));
    }
    const int64_t shortest = duration(last);
    for (size_t i = 0; i < matched.ranks.size(); ++i) {
      CollectiveLine& line = lines_[matched.ranks[i]];
      ++line.matched;
      if (duration(i) - shortest <= residual_ns) continue;
      line.waited_ns += duration(i) - shortest;
      if (!waits_.empty())
        waits_[matched.ranks[i]].push_back({.start_ns = matched.visits[i][at].start_ns,
                                            .wait_ns = duration(i) - shortest,
                                            .last = job_.ranks[matched.ranks[last]].number});
    }
    if (longest - shortest < kNoticeableNs || longest - shortest <= residual_ns) return;
    ++lines_[matched.ranks[last]].last;
    lines_[matched.ranks[last]].delayed_ns += longest - shortest;
  }

  const Job& job_;
  std::vector<CollectiveLine> lines_;
  std::vector<std::vector<CollectiveWait>> waits_;  // empty unless asked for
  std::vector<double> expected_last_;
};

}  // namespace

CollectiveComparison CompareCollectives(const Job& job, bool with_waits) {
  const std::vector<MatchedCollectives> all = MatchCollectives(job);
  Clocks clocks(job.ranks.size());
  for (const MatchedCollectives& matched : all) clocks.Add(matched);
  clocks.Finish();
  Comparison comparison(job, with_waits);
  for (const MatchedCollectives& matched : all) comparison.Add(matched, ResidualOf(matched));
  std::vector<std::vector<CollectiveWait>> waits = comparison.TakeWaits();
  return {.lines = std::move(comparison).Finish(clocks),
          .bandwidth = MeasureBandwidth(job, all),
          .clock_offsets = clocks.Offsets(),
          .waits = std::move(waits)};
}

}  // namespace gpusonde::analyze
