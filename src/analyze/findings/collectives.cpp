// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/stats/inference.h"

namespace gpusonde::analyze {
namespace {

// Being last counts only if another rank waited noticeably.
constexpr int64_t kNoticeableNs = 1'000;
// A straggler costs at least this share of its rank's span.
constexpr double kMinDelayShare = 0.01;

// Point-to-point between two ranks; the name doesn't say which direction.
bool IsPointToPoint(std::string_view name) { return name.find("SendRecv") != std::string_view::npos; }

// The collectives of one name by rank, in each rank's order.
using ByRank = std::map<size_t, std::vector<Collective>>;

std::map<std::string_view, ByRank> ByName(const Job& job) {
  std::map<std::string_view, ByRank> names;
  for (size_t i = 0; i < job.ranks.size(); ++i)
    for (const Collective& one : job.ranks[i].result.collectives)
      if (!IsPointToPoint(job.names[one.name])) names[job.names[one.name]][i].push_back(one);
  return names;
}

int64_t Median(std::vector<int64_t>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class Comparison {
 public:
  explicit Comparison(const Job& job) : job_(job), lines_(job.ranks.size()), offsets_(job.ranks.size()) {
    for (size_t i = 0; i < lines_.size(); ++i) lines_[i].rank = job.ranks[i].number;
  }

  // Collectives of one name: the first of every rank belong together, and so on.
  void Add(const ByRank& ranks) {
    if (ranks.size() < 2) return;
    size_t count = ranks.begin()->second.size();
    for (const auto& [rank, list] : ranks) count = std::min(count, list.size());
    for (size_t i = 0; i < count; ++i) AddOne(ranks, i);
    for (const auto& [rank, list] : ranks)
      expected_last_[rank] += static_cast<double>(count) / static_cast<double>(ranks.size());
  }

  std::vector<std::optional<int64_t>> TakeOffsets() && {
    std::vector<std::optional<int64_t>> medians;
    for (std::vector<int64_t>& offsets : offsets_)
      medians.push_back(offsets.empty() ? std::nullopt : std::optional(Median(offsets)));
    return medians;
  }

  std::vector<CollectiveLine> Finish() && {
    std::vector<double> p;
    for (size_t i = 0; i < lines_.size(); ++i) {
      CollectiveLine& line = lines_[i];
      line.clock_offset_ns = Median(offsets_[i]);
      for (int64_t& offset : offsets_[i]) offset = std::abs(offset - line.clock_offset_ns);
      line.clock_residual_ns = Median(offsets_[i]);
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
  int64_t EndOf(size_t rank, const Collective& one) const {
    return one.end_ns + job_.ranks[rank].epoch_offset_ns;
  }

  // All ranks leave a collective together, so the last to arrive spent the least time in it. That needs no
  // common clock.
  void AddOne(const ByRank& ranks, size_t index) {
    const auto duration = [index](const std::vector<Collective>& list) {
      return list[index].end_ns - list[index].start_ns;
    };
    size_t last = ranks.begin()->first;
    int64_t shortest = duration(ranks.begin()->second);
    int64_t longest = shortest;
    for (const auto& [rank, list] : ranks) {
      if (duration(list) < shortest) last = rank;
      shortest = std::min(shortest, duration(list));
      longest = std::max(longest, duration(list));
    }
    const int64_t first_end = EndOf(ranks.begin()->first, ranks.begin()->second[index]);
    for (const auto& [rank, list] : ranks) {
      ++lines_[rank].matched;
      lines_[rank].waited_ns += duration(list) - shortest;
      offsets_[rank].push_back(EndOf(rank, list[index]) - first_end);
    }
    if (longest - shortest < kNoticeableNs) return;
    ++lines_[last].last;
    lines_[last].delayed_ns += longest - shortest;
  }

  const Job& job_;
  std::vector<CollectiveLine> lines_;
  std::vector<std::vector<int64_t>> offsets_;
  std::map<size_t, double> expected_last_;
};

}  // namespace

std::vector<std::optional<int64_t>> ClockOffsets(const Job& job) {
  Comparison comparison(job);
  for (const auto& [name, ranks] : ByName(job)) comparison.Add(ranks);
  return std::move(comparison).TakeOffsets();
}

std::vector<CollectiveLine> CompareCollectives(const Job& job) {
  Comparison comparison(job);
  for (const auto& [name, ranks] : ByName(job)) comparison.Add(ranks);
  return std::move(comparison).Finish();
}

}  // namespace gpusonde::analyze
