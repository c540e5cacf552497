// SPDX-License-Identifier: Apache-2.0
#include "diagnose/collective_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

namespace gpusonde::diagnose {
namespace {

// Bounds of memory: rows come from other programs. NCCL's largest jobs have some ten communicators a process.
constexpr size_t kMaxGroups = 4096, kMaxMembers = 16'384, kMaxOperations = 32, kMaxCalls = 1024;

}  // namespace

const CollectiveCall* CollectiveMember::Find(const std::string& operation, int64_t sequence) const {
  const auto of_operation = calls.find(operation);
  if (of_operation == calls.end()) return nullptr;
  const auto call = of_operation->second.find(sequence);
  return call == of_operation->second.end() ? nullptr : &call->second;
}

void CollectiveGroups::Ingest(const model::Communicator& row) {
  if (row.rank < 0 || (groups_.size() >= kMaxGroups && !groups_.contains(row.communicator))) return;
  CollectiveGroup& group = groups_[row.communicator];
  if (group.members.size() >= kMaxMembers && !group.members.contains(row.rank)) return;
  CollectiveMember& member = group.members[row.rank];
  if (member.process != row.process) member = {.process = row.process};
  member.joined_ns = row.joined_ns;
  member.left_ns = row.left_ns.value_or(INT64_MAX);
  group.name = row.name;
  group.ranks = row.ranks;
}

void CollectiveGroups::Ingest(const model::Collective& row) {
  const auto group = groups_.find(row.communicator);
  if (group == groups_.end()) return;
  const auto found = group->second.members.find(row.rank);
  if (found == group->second.members.end()) return;
  CollectiveMember& member = found->second;
  if (!member.calls.contains(row.operation) && member.calls.size() >= kMaxOperations) return;
  CollectiveMember::Calls& calls = member.calls[row.operation];
  CollectiveCall& call = calls[row.sequence];
  call.called_ns = row.called_ns;
  call.begin_ns = std::max(call.begin_ns, row.begin_ns.value_or(0));
  call.end_ns = std::max(call.end_ns, row.end_ns.value_or(0));
  call.gpu_ns = std::max(call.gpu_ns, row.gpu_ns.value_or(0));
  if (calls.size() > kMaxCalls) calls.erase(calls.begin());
  if (row.called_ns < member.last_called_ns) return;
  member.tid = row.tid;
  member.last_operation = row.operation;
  member.last_sequence = row.sequence;
  member.last_called_ns = row.called_ns;
}

void CollectiveGroups::Forget(int64_t now_ns, const std::function<bool(const Id128& process)>& has_ended) {
  std::erase_if(groups_, [&](const auto& entry) {
    return std::ranges::all_of(entry.second.members, [&](const auto& member) {
      return member.second.left_ns <= now_ns || has_ended(member.second.process);
    });
  });
}

std::vector<Id128> CollectiveGroups::Processes() const {
  std::set<Id128> processes;
  for (const auto& [communicator, group] : groups_)
    for (const auto& [rank, member] : group.members) processes.insert(member.process);
  return {processes.begin(), processes.end()};
}

CollectiveRank Describe(int32_t rank, const CollectiveMember& member) {
  CollectiveRank described{.rank = rank,
                           .process = member.process,
                           .tid = member.tid,
                           .last_call = std::nullopt,
                           .last_called_ns = member.last_called_ns};
  if (member.last_called_ns != 0)
    described.last_call = fmt::format("{} #{}", member.last_operation, member.last_sequence);
  return described;
}

}  // namespace gpusonde::diagnose
