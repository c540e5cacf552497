// SPDX-License-Identifier: Apache-2.0
#include "diagnose/collective_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "base/order_statistics.h"
#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

// Bounds of memory: rows come from other programs. NCCL's largest jobs have some ten communicators a process.
constexpr size_t kMaxGroups = 4096, kMaxMembers = 16'384, kMaxOperations = 32, kMaxCalls = 1024,
                 kMaxWaits = 65'536;
// Rows of collectives arrive as late as other GPU work.
constexpr int64_t kLateNs = 1500 * kNanosPerMilli;
// The time looked at for stragglers, and what is usual: the median of as many seconds, at least of the fewer.
constexpr int64_t kWindowNs = 3 * kNanosPerSecond;
constexpr size_t kUsualSeconds = 60, kFewestSeconds = 3;
// A straggler makes the others wait for so much more of the time than usual, and ends below the second; it
// causes so much of all waiting, in so many collectives. Chosen, not fitted: below, ranks differ by chance.
constexpr double kBeginsAt = 0.2, kEndsAt = 0.1, kMostOfIt = 0.7;
constexpr int64_t kFewestCollectives = 3;
// A longer wait is a hang, not a straggler.
constexpr int64_t kMaxWaitNs = 5 * kNanosPerSecond;
// A rank whose call of an older collective never arrived (dropped, or asleep then) no longer holds up the
// others'.
constexpr int64_t kLostAfterNs = 30 * kNanosPerSecond;

}  // namespace

void CollectiveMatch::Ingest(const model::Communicator& row) {
  if (row.rank < 0 || (groups_.size() >= kMaxGroups && !groups_.contains(row.communicator))) return;
  Group& group = groups_[row.communicator];
  if (group.members.size() >= kMaxMembers && !group.members.contains(row.rank)) return;
  Member& member = group.members[row.rank];
  if (member.process != row.process) member = {.process = row.process};
  member.joined_ns = row.joined_ns;
  member.left_ns = row.left_ns.value_or(INT64_MAX);
  group.name = row.name;
  group.ranks = row.ranks;
}

void CollectiveMatch::Ingest(const model::Collective& row) {
  const auto group = groups_.find(row.communicator);
  if (group == groups_.end()) return;
  const auto found = group->second.members.find(row.rank);
  if (found == group->second.members.end()) return;
  Member& member = found->second;
  if (!member.calls.contains(row.operation) && member.calls.size() >= kMaxOperations) return;
  Sequences& sequences = member.calls[row.operation];
  Call& call = sequences[row.sequence];
  call.called_ns = row.called_ns;
  call.begin_ns = std::max(call.begin_ns, row.begin_ns.value_or(0));
  call.end_ns = std::max(call.end_ns, row.end_ns.value_or(0));
  call.gpu_ns = std::max(call.gpu_ns, row.gpu_ns.value_or(0));
  if (sequences.size() > kMaxCalls) sequences.erase(sequences.begin());
  if (row.called_ns < member.last_called_ns) return;
  member.tid = row.tid;
  member.last_operation = row.operation;
  member.last_sequence = row.sequence;
  member.last_called_ns = row.called_ns;
}

void CollectiveMatch::Forget(int64_t now_ns, const std::function<bool(const Id128& process)>& has_ended) {
  std::erase_if(groups_, [&](const auto& entry) {
    return std::ranges::all_of(entry.second.members, [&](const auto& member) {
      return member.second.left_ns <= now_ns || has_ended(member.second.process);
    });
  });
}

std::vector<Id128> CollectiveMatch::Processes() const {
  std::set<Id128> processes;
  for (const auto& [communicator, group] : groups_)
    for (const auto& [rank, member] : group.members) processes.insert(member.process);
  return {processes.begin(), processes.end()};
}

CollectiveRank CollectiveMatch::Describe(int32_t rank, const Member& member) {
  CollectiveRank described{.rank = rank,
                           .process = member.process,
                           .tid = member.tid,
                           .last_call = std::nullopt,
                           .last_called_ns = member.last_called_ns};
  if (member.last_called_ns != 0)
    described.last_call = fmt::format("{} #{}", member.last_operation, member.last_sequence);
  return described;
}

// The oldest collective of the group in which a rank's kernel has waited so long. Where NCCL shows no
// kernels, calls count instead: the program may be ahead of its GPU, but not for seconds.
std::optional<CollectiveHang> CollectiveMatch::HangOf(const std::string& communicator, const Group& group,
                                                      int64_t now_ns, int64_t hung_ns) {
  const bool shows_kernels = std::ranges::any_of(group.members, [](const auto& entry) {
    return std::ranges::any_of(entry.second.calls, [](const auto& of) {
      return std::ranges::any_of(of.second, [](const auto& call) { return call.second.begin_ns != 0; });
    });
  });
  const auto has_ended = [&](const Call& call) { return call.end_ns != 0 && call.end_ns <= now_ns; };
  // What has ended on one rank has been entered by all, and ends on all: it hangs nothing, though the end on
  // another rank may be unknown, as it was lost, or that rank is stopped.
  std::map<std::string_view, int64_t> ended;
  for (const auto& [rank, member] : group.members)
    for (const auto& [operation, sequences] : member.calls) {
      const auto last = std::find_if(sequences.rbegin(), sequences.rend(),
                                     [&](const auto& entry) { return has_ended(entry.second); });
      if (last == sequences.rend()) continue;
      int64_t& newest = ended.try_emplace(operation, last->first).first->second;
      newest = std::max(newest, last->first);
    }
  CollectiveHang hang{.communicator = communicator, .name = group.name};
  int32_t known = 0;
  for (const auto& [rank, member] : group.members) {
    if (!IsIn(member, now_ns)) continue;
    ++known;
    for (const auto& [operation, sequences] : member.calls) {
      const auto newest = ended.find(operation);
      const auto first = newest == ended.end() ? sequences.begin() : sequences.upper_bound(newest->second);
      for (auto at = first; at != sequences.end(); ++at) {
        const int64_t since_ns = shows_kernels ? at->second.begin_ns : at->second.called_ns;
        if (since_ns == 0 || now_ns - since_ns < hung_ns) continue;
        if (hang.since_ns != 0 && hang.since_ns <= since_ns) continue;
        hang.since_ns = since_ns;
        hang.operation = operation;
        hang.sequence = at->first;
      }
    }
  }
  if (hang.since_ns == 0) return std::nullopt;
  for (const auto& [rank, member] : group.members) {
    if (!IsIn(member, now_ns)) continue;
    const auto sequences = member.calls.find(hang.operation);
    const Sequences none;
    const Sequences& calls = sequences == member.calls.end() ? none : sequences->second;
    const auto call = calls.find(hang.sequence);
    if (call == calls.end()) {
      if (calls.empty() || calls.rbegin()->first < hang.sequence)
        hang.missing.push_back(Describe(rank, member));
    } else {
      const bool behind = shows_kernels && (call->second.begin_ns == 0 || call->second.begin_ns > now_ns);
      (behind ? hang.gpu_behind : hang.waiting).push_back(Describe(rank, member));
    }
  }
  hang.ranks = std::max(group.ranks.value_or(known), known);
  hang.elsewhere = hang.ranks - known;
  return hang;
}

std::vector<CollectiveHang> CollectiveMatch::Hangs(int64_t now_ns, int64_t hung_ns) const {
  std::vector<CollectiveHang> hangs;
  std::set<Id128> waiting;
  for (const auto& [communicator, group] : groups_) {
    std::optional<CollectiveHang> hang = HangOf(communicator, group, now_ns, hung_ns);
    if (!hang.has_value()) continue;
    for (const CollectiveRank& rank : hang->waiting) waiting.insert(rank.process);
    hangs.push_back(std::move(*hang));
  }
  std::ranges::sort(hangs, {}, &CollectiveHang::since_ns);
  const auto is_blamed = [&](const CollectiveRank& rank) { return !waiting.contains(rank.process); };
  const bool any_blamed = std::ranges::any_of(
      hangs, [&](const CollectiveHang& hang) { return std::ranges::any_of(hang.missing, is_blamed); });
  if (!any_blamed) return hangs;  // a deadlock, if any is missing
  for (CollectiveHang& hang : hangs)
    std::erase_if(hang.missing, [&](const CollectiveRank& rank) { return !is_blamed(rank); });
  return hangs;
}

// Adds to `waits` the collectives that have ended on all ranks since. Whoever comes last finds the others
// waiting, so its kernel runs the shortest; without the GPU's times, it is the one that began last.
void CollectiveMatch::JudgeEnded(Group& group, int64_t now_ns) {
  for (const auto& [operation, calls] : group.members.begin()->second.calls) {
    int64_t& judged = group.judged.try_emplace(operation, INT64_MIN).first->second;
    for (auto at = calls.upper_bound(judged); at != calls.end(); ++at) {
      struct Part {
        int32_t rank;
        Call call;
      };
      std::vector<Part> parts;
      for (const auto& [rank, member] : group.members) {
        const auto of = member.calls.find(operation);
        if (of == member.calls.end()) break;
        const auto call = of->second.find(at->first);
        if (call == of->second.end() || call->second.begin_ns == 0 || call->second.end_ns == 0 ||
            call->second.end_ns > now_ns)
          break;
        parts.push_back({rank, call->second});
      }
      if (parts.size() < group.members.size()) {
        if (calls.rbegin()->second.called_ns - at->second.called_ns > kLostAfterNs) judged = at->first;
        continue;
      }
      judged = at->first;
      const bool timed = std::ranges::all_of(parts, [](const Part& part) { return part.call.gpu_ns > 0; });
      const auto waited = [&](const Part& part) {
        return timed ? part.call.gpu_ns : part.call.end_ns - part.call.begin_ns;
      };
      const auto last = std::ranges::min_element(parts, {}, waited);
      const double shortest = static_cast<double>(waited(*last));
      double sum = 0;
      int64_t end_ns = 0;
      for (const Part& part : parts) {
        sum += static_cast<double>(waited(part)) - shortest;
        end_ns = std::max(end_ns, part.call.end_ns);
      }
      const double mean_ns = sum / static_cast<double>(parts.size() - 1);
      if (mean_ns > static_cast<double>(kMaxWaitNs)) continue;
      group.waits.push_back({end_ns, last->rank, mean_ns, operation});
      if (group.waits.size() > kMaxWaits) group.waits.pop_front();
    }
  }
}

std::vector<CollectiveStraggler> CollectiveMatch::Stragglers(int64_t now_ns) {
  std::vector<CollectiveStraggler> stragglers;
  const int64_t until_ns = now_ns - kLateNs;
  const int64_t from_ns = until_ns - kWindowNs;
  for (auto& [communicator, group] : groups_) {
    // With ranks on other hosts, the last one here may have waited for one there.
    if (group.members.size() < 2 || std::cmp_greater(group.ranks.value_or(0), group.members.size())) continue;
    JudgeEnded(group, now_ns);
    std::erase_if(group.waits, [&](const Group::Wait& wait) { return wait.time_ns < from_ns; });
    std::map<int32_t, double> by_rank;
    std::map<std::string, double> by_operation;
    int64_t collectives = 0;
    for (const Group::Wait& wait : group.waits) {
      if (wait.time_ns >= until_ns) continue;
      ++collectives;
      by_rank[wait.rank] += wait.waited_ns;
      by_operation[wait.operation] += wait.waited_ns;
    }
    if (collectives < kFewestCollectives) {
      group.open = false;
      continue;
    }
    const auto by_time = [](const auto& entry) { return entry.second; };
    const auto worst = std::ranges::max_element(by_rank, {}, by_time);
    const double all_ns = std::accumulate(by_rank.begin(), by_rank.end(), 0.0,
                                          [](double sum, const auto& entry) { return sum + entry.second; });
    const double share = std::min(all_ns / static_cast<double>(kWindowNs), 1.0);
    const double usual =
        group.usual.empty() ? 0 : MedianOf(std::vector(group.usual.begin(), group.usual.end()));
    const bool learnt = group.usual.size() >= kFewestSeconds;
    group.open =
        learnt && share - usual >= (group.open ? kEndsAt : kBeginsAt) && worst->second >= kMostOfIt * all_ns;
    if (!group.open) {
      group.usual.push_back(share);
      if (group.usual.size() > kUsualSeconds) group.usual.pop_front();
      continue;
    }
    const int64_t last = std::ranges::count_if(group.waits, [&](const Group::Wait& wait) {
      return wait.time_ns < until_ns && wait.rank == worst->first;
    });
    stragglers.push_back({.communicator = communicator,
                          .name = group.name,
                          .operation = std::ranges::max_element(by_operation, {}, by_time)->first,
                          .rank = Describe(worst->first, group.members[worst->first]),
                          .ranks = static_cast<int32_t>(group.members.size()),
                          .from_ns = from_ns,
                          .until_ns = until_ns,
                          .collectives = collectives,
                          .last = last,
                          .waited_ns = last == 0 ? 0 : worst->second / static_cast<double>(last),
                          .share = share,
                          .share_before = usual});
  }
  return stragglers;
}

}  // namespace gpusonde::diagnose
