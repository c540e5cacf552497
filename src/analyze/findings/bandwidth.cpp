// SPDX-License-Identifier: Apache-2.0
#include "analyze/findings/bandwidth.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/saturated.h"

namespace gpusonde::analyze {
namespace {

using importers::Operation;

// Whether all ranks leave such an operation together.
bool EveryoneWaitsForAll(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kAllGather ||
         operation == Operation::kReduceScatter || operation == Operation::kAllToAll;
}

// The bus's bandwidth by the algorithm's.
double BusFactor(Operation operation, int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (operation) {
    case Operation::kAllReduce:
      return 2 * (n - 1) / n;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
    case Operation::kGather:
    case Operation::kScatter:
      return (n - 1) / n;
    case Operation::kUnknown:
    case Operation::kBroadcast:
    case Operation::kReduce:
    case Operation::kSendReceive:
      return 1;
  }
  return 1;
}

struct LineKey {
  uint64_t group = 0;
  Operation operation = Operation::kUnknown;
  int size_class = 0;  // the power of two that a message has at least
  bool skew_removed = false;

  auto operator<=>(const LineKey&) const = default;
};

class Lines {
 public:
  // A collective, or one rank's part of it, of a group; `skew_ns` is not part of `time_ns`.
  struct Measured {
    Operation operation = Operation::kUnknown;
    int64_t bytes = 0;
    int64_t time_ns = 0;
    int64_t skew_ns = 0;
    bool skew_removed = false;
  };
  void Add(const importers::ProcessGroup& group, const Measured& one) {
    const LineKey key{group.identity, one.operation,
                      static_cast<int>(std::bit_width(static_cast<uint64_t>(one.bytes))), one.skew_removed};
    const auto [place, is_new] = lines_.try_emplace(key);
    BandwidthLine& line = place->second;
    if (is_new) {
      line.operation = importers::Name(one.operation);
      line.min_bytes = one.bytes;
      line.skew_removed = one.skew_removed;
    }
    line.ranks = std::max(line.ranks, group.size);
    if (line.group.empty() || (!group.label.empty() && group.label < line.group)) line.group = group.label;
    line.min_bytes = std::min(line.min_bytes, one.bytes);
    line.max_bytes = std::max(line.max_bytes, one.bytes);
    ++line.count;
    line.bytes = AddSaturated(line.bytes, one.bytes);
    line.total_ns = AddSaturated(line.total_ns, one.time_ns);
    line.skew_ns = AddSaturated(line.skew_ns, one.skew_ns);
  }

  std::vector<BandwidthLine> Finish() && {
    std::vector<BandwidthLine> sorted;
    for (auto& [key, line] : lines_) {
      if (line.total_ns > 0) {
        line.algorithm_bytes_per_s =
            static_cast<double>(line.bytes) / static_cast<double>(line.total_ns) * 1e9;
        if (line.ranks > 0)
          line.bus_bytes_per_s = *line.algorithm_bytes_per_s * BusFactor(key.operation, line.ranks);
      }
      sorted.push_back(std::move(line));
    }
    std::ranges::stable_sort(sorted, std::greater<>(), &BandwidthLine::total_ns);
    if (sorted.size() > kMaxBandwidthLines) sorted.resize(kMaxBandwidthLines);
    return sorted;
  }

 private:
  std::map<LineKey, BandwidthLine> lines_;
};

// Measures those collectives that every rank of their group has, and remembers which.
class WholeGroups {
 public:
  explicit WholeGroups(const Job& job) : job_(job) {
    for (const JobRank& rank : job.ranks) measured_.emplace_back(rank.result.collectives.size());
  }

  void Add(const MatchedCollectives& matched, Lines& lines) {
    if (matched.group.size != static_cast<int64_t>(matched.ranks.size())) return;
    for (size_t at = 0; at < matched.visits.front().size(); ++at) AddOne(matched, at, lines);
  }

  bool IsMeasured(size_t rank, size_t index) const { return measured_[rank][index]; }

 private:
  void AddOne(const MatchedCollectives& matched, size_t at, Lines& lines) {
    Lines::Measured one{.time_ns = std::numeric_limits<int64_t>::max(), .skew_removed = true};
    int64_t longest_ns = 0;
    for (size_t i = 0; i < matched.ranks.size(); ++i) {
      const Visit& visit = matched.visits[i][at];
      const Collective& part = job_.ranks[matched.ranks[i]].result.collectives[visit.index];
      if (i > 0 && part.operation != one.operation) return;  // they don't belong together
      one.operation = part.operation;
      one.bytes = std::max(one.bytes, part.bytes);
      one.time_ns = std::min(one.time_ns, visit.end_ns - visit.start_ns);
      longest_ns = std::max(longest_ns, visit.end_ns - visit.start_ns);
    }
    if (one.bytes == 0 || !EveryoneWaitsForAll(one.operation)) return;
    one.skew_ns = longest_ns - one.time_ns;
    lines.Add(matched.group, one);
    for (size_t i = 0; i < matched.ranks.size(); ++i)
      measured_[matched.ranks[i]][matched.visits[i][at].index] = true;
  }

  const Job& job_;
  std::vector<std::vector<bool>> measured_;  // by rank and its collectives
};

// Adds what the ranks of a collective reported, of each rank its first.
void AddTogether(const importers::ProcessGroup& group, std::span<const importers::ReportedCollective> parts,
                 Lines& lines) {
  const importers::ReportedCollective& first = parts.front();
  if (EveryoneWaitsForAll(first.operation) && static_cast<int64_t>(parts.size()) == group.size) {
    const auto [least, most] = std::ranges::minmax(parts, {}, &importers::ReportedCollective::time_ns);
    return lines.Add(group,
                     {.operation = first.operation,
                      .bytes = std::ranges::max(parts, {}, &importers::ReportedCollective::bytes).bytes,
                      .time_ns = least.time_ns,
                      .skew_ns = most.time_ns - least.time_ns,
                      .skew_removed = true});
  }
  for (const importers::ReportedCollective& part : parts)
    lines.Add(group, {.operation = part.operation, .bytes = part.bytes, .time_ns = part.time_ns});
}

void AddReported(const importers::ReportedCollectives& reported, Lines& lines) {
  std::vector<importers::ReportedCollective> sorted = reported.ended;
  std::ranges::sort(sorted);
  const auto collective = [](const importers::ReportedCollective& one) {
    return std::tuple(one.group, one.operation, one.sequence);
  };
  // Two recordings may have the same rank.
  const auto repeated = std::ranges::unique(sorted, {}, [&](const importers::ReportedCollective& one) {
    return std::pair(collective(one), one.rank);
  });
  sorted.erase(repeated.begin(), repeated.end());
  for (auto part = sorted.begin(); part != sorted.end();) {
    const auto end = std::find_if(part, sorted.end(),
                                  [&](const auto& one) { return collective(one) != collective(*part); });
    importers::ProcessGroup group{.identity = part->group};
    if (const auto known = reported.groups.find(part->group); known != reported.groups.end()) {
      group.size = known->second.ranks;
      group.label = known->second.label;
    }
    AddTogether(group, {part, end}, lines);
    part = end;
  }
}

}  // namespace

std::vector<BandwidthLine> MeasureBandwidth(const Job& job, std::span<const MatchedCollectives> matched) {
  Lines lines;
  WholeGroups whole(job);
  for (const MatchedCollectives& one : matched) whole.Add(one, lines);
  const importers::ProcessGroup unknown;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const JobRank& of = job.ranks[rank];
    for (size_t i = 0; i < of.result.collectives.size(); ++i) {
      const Collective& one = of.result.collectives[i];
      if (one.bytes == 0 || whole.IsMeasured(rank, i)) continue;
      const auto known = of.groups.find(importers::GroupOf(one.collective));
      lines.Add(known != of.groups.end() ? known->second.group : unknown,
                {.operation = one.operation, .bytes = one.bytes, .time_ns = one.end_ns - one.start_ns});
    }
  }
  if (job.reported != nullptr) AddReported(*job.reported, lines);
  return std::move(lines).Finish();
}

}  // namespace gpusonde::analyze
