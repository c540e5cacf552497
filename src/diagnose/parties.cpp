// SPDX-License-Identifier: Apache-2.0
#include "diagnose/parties.h"

#include <vector>

namespace gpusonde::diagnose {

void Parties::Take(const model::Process& process) {
  const auto [known, is_new] = processes_.insert_or_assign(process.process, process);
  if (is_new) children_.emplace(process.parent_pid, process.process);
}

const model::Process* Parties::Find(const Id128& process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? nullptr : &found->second;
}

std::set<Id128> Parties::FamilyOf(const Id128& process) const {
  std::set<Id128> family = {process};
  std::vector<Id128> todo = {process};
  while (!todo.empty()) {
    const model::Process* parent = Find(todo.back());
    todo.pop_back();
    if (parent == nullptr || parent->pid == 0) continue;
    const auto [first, last] = children_.equal_range(parent->pid);
    for (auto child = first; child != last; ++child) {
      const model::Process* row = Find(child->second);
      // A pid is used again: a child began while its parent lived.
      if (row == nullptr || row->started_ns < parent->started_ns ||
          (parent->exited_ns.has_value() && row->started_ns > *parent->exited_ns))
        continue;
      if (family.insert(child->second).second) todo.push_back(child->second);
    }
  }
  return family;
}

Party Parties::PartyOf(const Id128& process, const std::set<Id128>& family) const {
  const model::Process* row = Find(process);
  if (row == nullptr) return {.own = family.contains(process)};
  // The root of the hierarchy says nothing.
  return {
      .name = row->name, .cgroup = row->cgroup == "/" ? "" : row->cgroup, .own = family.contains(process)};
}

}  // namespace gpusonde::diagnose
