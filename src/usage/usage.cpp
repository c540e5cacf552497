// SPDX-License-Identifier: Apache-2.0
#include "usage/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "model/cgroup_owner.h"
#include "store/queries/process_facts.h"
#include "store/queries/usage_query.h"

namespace gpusonde::usage {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kShortIdLength = 12;  // as `docker ps` and `crictl ps` show ids

// Names a process after what it is summed by.
class Namer {
 public:
  Namer(const store::ContainerNames& containers, const std::vector<store::GpuDevice>& devices)
      : containers_(containers), devices_(devices) {}

  std::string Name(By by, const store::DeviceHolder& holder) const {
    const model::CgroupOwner owner = model::OwnerOfCgroup(holder.cgroup);
    switch (by) {
      case By::kOwner:
        return OwnerName(holder, owner);
      case By::kPod:
        return PodName(owner);
      case By::kContainer:
        return Container(owner);
      case By::kJob:
        return owner.slurm_job;
      case By::kService:
        return owner.service;
      case By::kUser:
        return std::to_string(holder.user_id);
      case By::kApplication:
        return ApplicationOf(holder.name, holder.command);
      case By::kProcess:
        return fmt::format("{} ({})", ApplicationOf(holder.name, holder.command), holder.pid);
      case By::kDevice:
        return DeviceName(holder.device);
      case By::kHost:
        return holder.host;
    }
    return {};
  }

 private:
  const store::ContainerName* NamesOf(const model::CgroupOwner& owner) const {
    const auto found = containers_.find(owner.container);
    return found == containers_.end() ? nullptr : &found->second;
  }

  // "ml/trainer-0", or the UID of a pod without a name.
  std::string PodName(const model::CgroupOwner& owner) const {
    const store::ContainerName* names = NamesOf(owner);
    if (names == nullptr || names->pod.empty()) return owner.pod_uid;
    return names->pod_namespace + "/" + names->pod;
  }

  std::string Container(const model::CgroupOwner& owner) const {
    if (owner.container.empty()) return {};
    const store::ContainerName* names = NamesOf(owner);
    const std::string name =
        names == nullptr || names->name.empty() ? owner.container.substr(0, kShortIdLength) : names->name;
    const std::string pod = PodName(owner);
    return pod.empty() ? name : pod + "/" + name;
  }

  std::string OwnerName(const store::DeviceHolder& holder, const model::CgroupOwner& owner) const {
    if (const std::string pod = PodName(owner); !pod.empty()) return "pod " + pod;
    if (!owner.slurm_job.empty()) return "job " + owner.slurm_job;
    if (!owner.container.empty()) return "container " + Container(owner);
    // What a user starts in a desktop or by SSH belongs to the user.
    if (!owner.service.empty() && !owner.service.starts_with("user@")) return "service " + owner.service;
    return fmt::format("user {}", holder.user_id);
  }

  std::string DeviceName(const Id128& id) const {
    const auto device = std::ranges::find(devices_, id, &store::GpuDevice::device);
    if (device == devices_.end() || device->ordinal < 0) return "GPU of an unknown number";
    return fmt::format("GPU {} {} {}", device->ordinal, device->name, device->uuid);
  }

  const store::ContainerNames& containers_;
  const std::vector<store::GpuDevice>& devices_;
};

void Sort(std::vector<Group>& groups) {
  std::ranges::sort(groups, {}, &Group::name);
  std::ranges::stable_sort(groups, std::greater(),
                           [](const Group& group) { return AccountableNs(group.use); });
}

std::vector<Group> GroupsOf(std::map<std::string, Group> by_name) {
  std::vector<Group> groups;
  for (auto& [name, group] : by_name) {
    group.name = name;
    groups.push_back(std::move(group));
  }
  Sort(groups);
  return groups;
}

bool IsInterpreter(std::string_view program) {
  constexpr std::array kInterpreters = {"python", "pypy", "ruby", "node", "perl", "julia", "bash", "sh"};
  return std::ranges::any_of(kInterpreters, [&](std::string_view interpreter) {
    return program.starts_with(interpreter) &&
           program.find_first_not_of("0123456789.", interpreter.size()) == std::string_view::npos;
  });
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view NextWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace

Group& Group::operator+=(const Group& more) {
  processes.insert(more.processes.begin(), more.processes.end());
  devices.insert(more.devices.begin(), more.devices.end());
  use += more.use;
  sampled_busy_ns += more.sampled_busy_ns;
  sampled_ns += more.sampled_ns;
  return *this;
}

std::optional<double> Group::SampledUtilization() const {
  return sampled_ns > 0 ? std::optional(sampled_busy_ns / sampled_ns) : std::nullopt;
}

Group Usage::Total() const {
  Group total;
  for (const Group& group : groups) total += group;
  return total;
}

std::optional<By> FindBy(std::string_view name) {
  const auto found = std::ranges::find(kByNames, name);
  if (found == std::end(kByNames)) return std::nullopt;
  return static_cast<By>(found - std::begin(kByNames));
}

double AccountableNs(const model::HolderUse& use) { return use.busy_ns + use.idle_ns + use.unobserved_ns; }

std::string ApplicationOf(std::string_view name, std::string_view command) {
  const std::string_view program = BaseName(NextWord(command));
  if (!IsInterpreter(program)) return std::string(program.empty() ? name : program);
  while (true) {
    const std::string_view word = NextWord(command);
    if (word.empty() || word == "-c") return std::string(program);
    if (word == "-m") return std::string(NextWord(command));
    if (!word.starts_with('-')) return std::string(BaseName(word));
  }
}

Result<Usage> ReadUsage(store::Store& store, const model::Selection& selection, By by) {
  ASSIGN_OR_RETURN(const store::GpuUsage read, store::ReadGpuUsage(store, selection));
  ASSIGN_OR_RETURN(const store::ContainerNames containers, store::ReadContainerNames(store));
  const Namer namer(containers, read.devices);
  std::map<std::string, Group> by_name;
  for (const store::DeviceHolder& holder : read.holders) {
    Group& group = by_name[namer.Name(by, holder).substr(0, kMaxNameBytes)];
    group.processes.insert(holder.process);
    group.devices.insert(holder.device);
    group.use += holder.use;
    if (!holder.sampled_utilization.has_value()) continue;
    group.sampled_busy_ns += *holder.sampled_utilization * static_cast<double>(holder.use.held_ns);
    group.sampled_ns += static_cast<double>(holder.use.held_ns);
  }
  Usage usage{.range = read.range, .by = by, .groups = GroupsOf(std::move(by_name))};
  for (const store::GpuDevice& device : read.devices) {
    if (device.parent.has_value()) continue;  // the work of MIG instances counts for the whole GPU
    usage.devices.insert(device.device);
    usage.simulated = usage.simulated || device.simulated;
  }
  return usage;
}

Usage Merge(std::vector<Usage> hosts) {
  Usage all;
  std::map<std::string, Group> by_name;
  for (Usage& host : hosts) {
    if (host.range.from_ns < host.range.to_ns) all.range = host.range;
    all.by = host.by;
    all.simulated = all.simulated || host.simulated;
    all.devices.merge(host.devices);
    for (const Group& group : host.groups) by_name[group.name] += group;
  }
  all.groups = GroupsOf(std::move(by_name));
  return all;
}

}  // namespace gpusonde::usage
