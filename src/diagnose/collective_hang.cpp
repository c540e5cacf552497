// SPDX-License-Identifier: Apache-2.0
#include "diagnose/collective_hang.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

namespace gpusonde::diagnose {
namespace {

// A collective in which a rank waits.
struct PendingCollective {
  std::string operation;
  int64_t sequence = 0;
  int64_t since_ns = 0;
};

bool ShowsKernels(const CollectiveGroup& group) {
  return std::ranges::any_of(group.members | std::views::values, [](const CollectiveMember& member) {
    return std::ranges::any_of(member.calls | std::views::values, [](const CollectiveMember::Calls& calls) {
      return std::ranges::any_of(calls | std::views::values,
                                 [](const CollectiveCall& call) { return call.begin_ns != 0; });
    });
  });
}

// By operation: the newest sequence number that has ended on any rank. What has ended on one rank has been
// entered by all, and ends on all: it hangs nothing, though the end on another rank may be unknown, as it was
// lost, or that rank is stopped.
std::map<std::string_view, int64_t> NewestEnded(const CollectiveGroup& group, int64_t now_ns) {
  std::map<std::string_view, int64_t> ended;
  for (const CollectiveMember& member : group.members | std::views::values)
    for (const auto& [operation, calls] : member.calls) {
      const auto last = std::ranges::find_if(
          calls.rbegin(), calls.rend(), [&](const auto& entry) { return entry.second.HasEnded(now_ns); });
      if (last == calls.rend()) continue;
      int64_t& newest = ended.try_emplace(operation, last->first).first->second;
      newest = std::max(newest, last->first);
    }
  return ended;
}

// A rank waits from when its kernel begins. Where NCCL shows no kernels, from its call: the program may be
// ahead of its GPU, but not for seconds.
std::optional<PendingCollective> OldestWait(const CollectiveGroup& group, bool shows_kernels, int64_t now_ns,
                                            int64_t hung_ns) {
  const std::map<std::string_view, int64_t> ended = NewestEnded(group, now_ns);
  std::optional<PendingCollective> oldest;
  for (const CollectiveMember& member : group.members | std::views::values) {
    if (!member.IsIn(now_ns)) continue;
    for (const auto& [operation, calls] : member.calls) {
      const auto newest = ended.find(operation);
      const auto first = newest == ended.end() ? calls.begin() : calls.upper_bound(newest->second);
      for (const auto& [sequence, call] : std::ranges::subrange(first, calls.end())) {
        const int64_t since_ns = shows_kernels ? call.begin_ns : call.called_ns;
        const bool is_long = since_ns != 0 && now_ns - since_ns >= hung_ns;
        if (is_long && (!oldest.has_value() || since_ns < oldest->since_ns))
          oldest = {.operation = operation, .sequence = sequence, .since_ns = since_ns};
      }
    }
  }
  return oldest;
}

// Whether a rank that is not known to have called a collective has called a later one of the same operation.
bool IsBeyond(const CollectiveMember& member, const PendingCollective& collective) {
  const auto calls = member.calls.find(collective.operation);
  return calls != member.calls.end() && !calls->second.empty() &&
         calls->second.rbegin()->first > collective.sequence;
}

}  // namespace

std::optional<CollectiveHang> FindHang(const std::string& communicator, const CollectiveGroup& group,
                                       int64_t now_ns, int64_t hung_ns) {
  const bool shows_kernels = ShowsKernels(group);
  const std::optional<PendingCollective> oldest = OldestWait(group, shows_kernels, now_ns, hung_ns);
  if (!oldest.has_value()) return std::nullopt;
  CollectiveHang hang{.communicator = communicator,
                      .name = group.name,
                      .operation = oldest->operation,
                      .sequence = oldest->sequence,
                      .since_ns = oldest->since_ns};
  int32_t known = 0;
  for (const auto& [rank, member] : group.members) {
    if (!member.IsIn(now_ns)) continue;
    ++known;
    const CollectiveCall* call = member.Find(oldest->operation, oldest->sequence);
    if (call == nullptr) {
      if (!IsBeyond(member, *oldest)) hang.missing.push_back(Describe(rank, member));
    } else if (shows_kernels && !call->HasBegun(now_ns)) {
      hang.gpu_behind.push_back(Describe(rank, member));
    } else {
      hang.waiting.push_back(Describe(rank, member));
    }
  }
  hang.ranks = std::max(group.ranks.value_or(known), known);
  hang.elsewhere = hang.ranks - known;
  return hang;
}

std::vector<CollectiveHang> FindHangs(const CollectiveGroups& groups, int64_t now_ns, int64_t hung_ns) {
  std::vector<CollectiveHang> hangs;
  std::set<Id128> waiting;
  for (const auto& [communicator, group] : groups.by_communicator()) {
    std::optional<CollectiveHang> hang = FindHang(communicator, group, now_ns, hung_ns);
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

}  // namespace gpusonde::diagnose
