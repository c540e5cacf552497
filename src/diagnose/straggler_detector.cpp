// SPDX-License-Identifier: Apache-2.0
#include "diagnose/straggler_detector.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/order_statistics.h"
#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

// Bounds memory.
constexpr size_t kMaxEnded = 65'536;
// Rows of collectives arrive as late as other GPU work.
constexpr int64_t kLateNs = 1500 * kNanosPerMilli;
// The time looked at.
constexpr int64_t kWindowNs = 3 * kNanosPerSecond;
// What is usual is the median of the last seconds; with fewer than the minimum it isn't known yet.
constexpr size_t kMinUsualSeconds = 3, kMaxUsualSeconds = 60;
// Thresholds of a straggler, chosen, not fitted; below them ranks differ by chance. The rise of the share of
// time in which the others wait, to become one and to stay one; the share of all waiting that it causes; and
// the number of collectives in which it does.
constexpr double kMinRise = 0.2, kMinRiseToStay = 0.1, kMinShareOfWaits = 0.7;
constexpr int64_t kMinCollectives = 3;
// A longer wait is a hang, not a straggler.
constexpr int64_t kMaxWaitNs = 5 * kNanosPerSecond;
// A rank whose call of an older collective never arrived (dropped, or asleep then) no longer holds up the
// others'.
constexpr int64_t kLostAfterNs = 30 * kNanosPerSecond;

struct RankCall {
  int32_t rank = 0;
  CollectiveCall call;
};

// Empty unless the collective has ended on all ranks.
std::vector<RankCall> CallsOfAll(const CollectiveGroup& group, const std::string& operation, int64_t sequence,
                                 int64_t now_ns) {
  std::vector<RankCall> calls;
  for (const auto& [rank, member] : group.members) {
    const CollectiveCall* call = member.Find(operation, sequence);
    if (call == nullptr || call->begin_ns == 0 || !call->HasEnded(now_ns)) return {};
    calls.push_back({rank, *call});
  }
  return calls;
}

// The rank that comes last finds the others waiting, so its kernel is the shortest. Without the GPU's times,
// it is the rank whose call began last.
EndedCollective Judge(const std::vector<RankCall>& calls, const std::string& operation) {
  const bool timed = std::ranges::all_of(calls, [](const RankCall& each) { return each.call.gpu_ns > 0; });
  const auto length_ns = [&](const RankCall& each) {
    return timed ? each.call.gpu_ns : each.call.end_ns - each.call.begin_ns;
  };
  const auto last = std::ranges::min_element(calls, {}, length_ns);
  const auto shortest = static_cast<double>(length_ns(*last));
  double waited_ns = 0;
  int64_t end_ns = 0;
  for (const RankCall& each : calls) {
    waited_ns += static_cast<double>(length_ns(each)) - shortest;
    end_ns = std::max(end_ns, each.call.end_ns);
  }
  return {.end_ns = end_ns,
          .last_rank = last->rank,
          .waited_ns = waited_ns / static_cast<double>(calls.size() - 1),
          .operation = operation};
}

// The waits of some collectives.
struct Waits {
  int64_t collectives = 0;
  double ns = 0;
};
struct WaitSums {
  std::map<int32_t, Waits> by_rank;  // that came last
  std::map<std::string, double> by_operation;

  Waits total() const {
    Waits sum;
    for (const auto& [rank, waits] : by_rank) {
      sum.collectives += waits.collectives;
      sum.ns += waits.ns;
    }
    return sum;
  }
};

WaitSums SumWaits(const std::deque<EndedCollective>& ended, int64_t until_ns) {
  WaitSums sums;
  for (const EndedCollective& each : ended) {
    if (each.end_ns >= until_ns) continue;
    Waits& waits = sums.by_rank[each.last_rank];
    ++waits.collectives;
    waits.ns += each.waited_ns;
    sums.by_operation[each.operation] += each.waited_ns;
  }
  return sums;
}

double UsualShare(const std::deque<double>& shares) {
  return shares.empty() ? 0 : MedianOf(std::vector(shares.begin(), shares.end()));
}

}  // namespace

// Adds the collectives that have ended on all ranks since the last call.
void StragglerDetector::JudgeEnded(const CollectiveGroup& group, int64_t now_ns, History& history) {
  for (const auto& [operation, calls] : group.members.begin()->second.calls) {
    int64_t& judged = history.judged.try_emplace(operation, INT64_MIN).first->second;
    const int64_t newest_ns = calls.empty() ? 0 : calls.rbegin()->second.called_ns;
    for (auto at = calls.upper_bound(judged); at != calls.end(); ++at) {
      const std::vector<RankCall> of_all = CallsOfAll(group, operation, at->first, now_ns);
      const bool is_lost = newest_ns - at->second.called_ns > kLostAfterNs;
      if (!of_all.empty() || is_lost) judged = at->first;
      if (of_all.empty()) continue;
      EndedCollective ended = Judge(of_all, operation);
      if (ended.waited_ns > static_cast<double>(kMaxWaitNs)) continue;
      history.ended.push_back(std::move(ended));
      if (history.ended.size() > kMaxEnded) history.ended.pop_front();
    }
  }
}

std::optional<CollectiveStraggler> StragglerDetector::FindIn(const CollectiveGroup& group, int64_t until_ns,
                                                             History& history) {
  const int64_t from_ns = until_ns - kWindowNs;
  std::erase_if(history.ended, [&](const EndedCollective& each) { return each.end_ns < from_ns; });
  const WaitSums sums = SumWaits(history.ended, until_ns);
  const Waits all = sums.total();
  if (all.collectives < kMinCollectives) {
    history.has_straggler = false;
    return std::nullopt;
  }
  const auto& [rank, worst] =
      *std::ranges::max_element(sums.by_rank, {}, [](const auto& each) { return each.second.ns; });
  const double share = std::min(all.ns / static_cast<double>(kWindowNs), 1.0);
  const double usual = UsualShare(history.usual);
  const auto member = group.members.find(rank);
  history.has_straggler = member != group.members.end() && history.usual.size() >= kMinUsualSeconds &&
                          share - usual >= (history.has_straggler ? kMinRiseToStay : kMinRise) &&
                          worst.ns >= kMinShareOfWaits * all.ns;
  if (!history.has_straggler) {
    history.usual.push_back(share);
    if (history.usual.size() > kMaxUsualSeconds) history.usual.pop_front();
    return std::nullopt;
  }
  const auto most =
      std::ranges::max_element(sums.by_operation, {}, [](const auto& each) { return each.second; });
  return CollectiveStraggler{.communicator = {},
                             .name = group.name,
                             .operation = most->first,
                             .rank = Describe(rank, member->second),
                             .ranks = static_cast<int32_t>(group.members.size()),
                             .from_ns = from_ns,
                             .until_ns = until_ns,
                             .collectives = all.collectives,
                             .last = worst.collectives,
                             .waited_ns = worst.ns / static_cast<double>(worst.collectives),
                             .share = share,
                             .share_before = usual};
}

std::vector<CollectiveStraggler> StragglerDetector::Find(const CollectiveGroups& groups, int64_t now_ns) {
  const auto& known = groups.by_communicator();
  std::erase_if(histories_, [&](const auto& entry) { return !known.contains(entry.first); });
  std::vector<CollectiveStraggler> stragglers;
  for (const auto& [communicator, group] : known) {
    // With ranks on other hosts, the last one here may have waited for one there.
    if (group.members.size() < 2 || std::cmp_greater(group.ranks.value_or(0), group.members.size())) continue;
    History& history = histories_[communicator];
    JudgeEnded(group, now_ns, history);
    std::optional<CollectiveStraggler> found = FindIn(group, now_ns - kLateNs, history);
    if (!found.has_value()) continue;
    found->communicator = communicator;
    stragglers.push_back(std::move(*found));
  }
  return stragglers;
}

}  // namespace gpusonde::diagnose
