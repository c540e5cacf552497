// SPDX-License-Identifier: Apache-2.0
#include "diagnose/actors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/cgroup_owner.h"

namespace gpusonde::diagnose {

namespace {

constexpr size_t kMaxContainers = 10'000;  // when there are more, those without processes are forgotten

// Pids are reused: a child must have started while its parent lived.
bool IsWithin(const model::Process& child, const model::Process& parent) {
  return child.started_ns >= parent.started_ns && child.started_ns <= parent.exited_ns.value_or(INT64_MAX);
}

bool IsLowerCase(char c) { return c >= 'a' && c <= 'z'; }

// A command of gpusonde that profiles nothing is named with it, "gpusonde analyze": it isn't what IsSelf
// means, but competes like any program.
std::string NameOf(const model::Process& process) {
  constexpr std::array<std::string_view, 3> kProfilers = {"record", "up", "agent"};
  std::string_view command = process.command;
  if (process.name != "gpusonde" || !command.contains(' ')) return process.name;
  command.remove_prefix(command.find(' ') + 1);
  command = command.substr(0, command.find(' '));
  if (!std::ranges::all_of(command, IsLowerCase) ||
      std::ranges::find(kProfilers, command) != kProfilers.end())
    return process.name;
  return fmt::format("{} {}", process.name, command);
}

}  // namespace

void Actors::Ingest(const model::Process& process) {
  const auto [known, is_new] = processes_.try_emplace(process.process, process);
  if (is_new) {
    children_.emplace(process.parent_pid, process.process);
  } else {
    const int32_t parent_pid = known->second.parent_pid;  // the original parent, also after a re-parenting
    known->second = process;
    known->second.parent_pid = parent_pid;
  }
  if (process.exited_ns.has_value()) ended_.emplace(*process.exited_ns, process.process);
}

void Actors::NameContainer(const model::Container& container) {
  if (container.name.empty() && container.pod.empty()) return;
  if (containers_.size() >= kMaxContainers) ForgetContainers();
  containers_[container.container] =
      container.pod.empty()
          ? fmt::format("container {}", container.name)
          : fmt::format("pod {}/{} (namespace {})", container.pod, container.name, container.pod_namespace);
}

void Actors::ForgetContainers() {
  std::set<std::string> used;
  for (const auto& [id, process] : processes_) used.insert(model::OwnerOfCgroup(process.cgroup).container);
  std::erase_if(containers_, [&](const auto& entry) { return !used.contains(entry.first); });
  if (containers_.size() >= kMaxContainers) containers_.clear();
}

// The root cgroup isn't worth naming.
std::string Actors::PlaceOf(const std::string& cgroup) const {
  if (cgroup == "/") return "";
  if (containers_.empty()) return cgroup;
  const auto container = containers_.find(model::OwnerOfCgroup(cgroup).container);
  return container == containers_.end() ? cgroup : container->second;
}

bool Actors::HasChildren(const model::Process& parent) const {
  if (parent.pid == 0) return false;
  const auto [first, last] = children_.equal_range(parent.pid);
  return std::any_of(first, last, [&](const auto& child) {
    const model::Process* row = Find(child.second);
    return row != nullptr && IsWithin(*row, parent);
  });
}

void Actors::Forget(const Id128& process) {
  const auto row = processes_.find(process);
  const auto [first, last] = children_.equal_range(row->second.parent_pid);
  const auto child = std::find_if(first, last, [&](const auto& each) { return each.second == process; });
  if (child != last) children_.erase(child);
  processes_.erase(row);
}

void Actors::ForgetEndedBefore(int64_t time_ns) {
  constexpr int64_t kAgainNs = 60 * kNanosPerSecond;
  while (!ended_.empty() && ended_.begin()->first < time_ns) {
    const Id128 process = ended_.begin()->second;
    ended_.erase(ended_.begin());
    const model::Process* row = Find(process);
    if (row == nullptr) continue;
    if (HasChildren(*row))
      ended_.emplace(time_ns + kAgainNs, process);
    else
      Forget(process);
  }
}

const model::Process* Actors::Find(const Id128& process) const {
  const auto found = processes_.find(process);
  return found == processes_.end() ? nullptr : &found->second;
}

std::set<Id128> Actors::FamilyOf(const Id128& process) const {
  std::set<Id128> family = {process};
  std::vector<Id128> todo = {process};
  while (!todo.empty()) {
    const model::Process* parent = Find(todo.back());
    todo.pop_back();
    if (parent == nullptr || parent->pid == 0) continue;
    const auto [first, last] = children_.equal_range(parent->pid);
    for (auto child = first; child != last; ++child) {
      const model::Process* row = Find(child->second);
      if (row == nullptr || !IsWithin(*row, *parent)) continue;
      if (family.insert(child->second).second) todo.push_back(child->second);
    }
  }
  return family;
}

Actor Actors::ActorOf(const Id128& process, const std::set<Id128>& family) const {
  const model::Process* row = Find(process);
  if (row == nullptr) return {.own = family.contains(process)};
  return {.name = NameOf(*row),
          .cgroup = PlaceOf(row->cgroup),
          .own = family.contains(process),
          .pid = row->pid,
          .command = row->command};
}

}  // namespace gpusonde::diagnose
