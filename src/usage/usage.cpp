// SPDX-License-Identifier: Apache-2.0
#include "usage/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "model/cgroup_owner.h"
#include "store/queries/container_names.h"
#include "store/queries/usage_query.h"

namespace gpusonde::usage {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr int kMaxLabels = 100;
constexpr std::string_view kLabelPrefix = "label:";
// What a container without a process has of a process is unknown.
constexpr std::string_view kNoProcess = "no process";

// The values of one label of pods.
struct Label {
  std::map<std::string, std::string, std::less<>> by_container;       // id
  std::map<std::pair<std::string, std::string>, std::string> by_pod;  // namespace and name
};

Result<Label> ReadLabel(store::Store& store, const std::string& name,
                        const store::ContainerNames& containers) {
  const store::Parameter parameters[] = {name};
  ASSIGN_OR_RETURN(
      const auto rows,
      store.Query("SELECT container, value FROM pod_labels WHERE name = ? AND value <> ''", parameters));
  Label label;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return label;
    label.by_container[std::string(rows->Text(0))] = std::string(rows->Text(1));
    if (const auto* container = containers.Find(rows->Text(0));
        container != nullptr && !container->pod.empty())
      label.by_pod[{container->pod_namespace, container->pod}] = std::string(rows->Text(1));
  }
}

Result<std::set<std::string>> ReadLabelNames(store::Store& store) {
  ASSIGN_OR_RETURN(
      const auto rows,
      store.Query(fmt::format("SELECT DISTINCT name FROM pod_labels ORDER BY name LIMIT {}", kMaxLabels)));
  std::set<std::string> names;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return names;
    names.emplace(rows->Text(0).substr(0, kMaxNameBytes));
  }
}

// Names a process after what it is summed by.
class Namer {
 public:
  Namer(const store::ContainerNames& containers, const Label& label,
        const std::vector<store::GpuDevice>& devices)
      : containers_(containers), label_(label), devices_(devices) {}

  std::string Name(By by, const store::DeviceHolder& holder) const {
    if (holder.without_process.has_value()) return NameOfPod(by, holder, *holder.without_process);
    const model::CgroupOwner owner = model::OwnerOfCgroup(holder.cgroup);
    switch (by) {
      case By::kOwner:
        return OwnerName(holder, owner);
      case By::kPod:
        return containers_.PodOf(owner);
      case By::kNamespace: {
        const store::ContainerName* names = containers_.Find(owner.container);
        return names == nullptr ? "" : names->pod_namespace;
      }
      case By::kContainer:
        return containers_.ContainerOf(owner);
      case By::kLabel: {
        const auto value = label_.by_container.find(owner.container);
        return value == label_.by_container.end() ? "" : value->second;
      }
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
  // A container that has a device allocated, and no process on it.
  std::string NameOfPod(By by, const store::DeviceHolder& holder, const store::HolderPod& pod) const {
    std::string name = pod.pod_namespace + "/" + pod.pod;
    switch (by) {
      case By::kOwner:
        return "pod " + name;
      case By::kPod:
        return name;
      case By::kNamespace:
        return pod.pod_namespace;
      case By::kContainer:
        return name + "/" + pod.container;
      case By::kLabel: {
        const auto value = label_.by_pod.find({pod.pod_namespace, pod.pod});
        return value == label_.by_pod.end() ? "" : value->second;
      }
      case By::kDevice:
        return DeviceName(holder.device);
      case By::kHost:
        return holder.host;
      case By::kApplication:
      case By::kProcess:
        return std::string(kNoProcess);
      case By::kJob:
      case By::kService:
      case By::kUser:
        return {};
    }
    return {};
  }

  std::string OwnerName(const store::DeviceHolder& holder, const model::CgroupOwner& owner) const {
    if (const std::string pod = containers_.PodOf(owner); !pod.empty()) return "pod " + pod;
    if (!owner.slurm_job.empty()) return "job " + owner.slurm_job;
    if (!owner.container.empty()) return "container " + containers_.ContainerOf(owner);
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
  const Label& label_;
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
  without_process_ns += more.without_process_ns;
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

std::string NameOf(const SumBy& by) {
  if (by.by == By::kLabel) return std::string(kLabelPrefix) + by.label;
  return std::string(kByNames[static_cast<size_t>(by.by)]);
}

std::optional<SumBy> FindBy(std::string_view name) {
  if (name.starts_with(kLabelPrefix) && name.size() > kLabelPrefix.size())
    return SumBy{.by = By::kLabel, .label = std::string(name.substr(kLabelPrefix.size()))};
  const auto found = std::ranges::find(kByNames, name);
  if (found == std::end(kByNames)) return std::nullopt;
  return SumBy{.by = static_cast<By>(found - std::begin(kByNames))};
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

Result<Usage> ReadUsage(store::Store& store, const model::Selection& selection, const SumBy& by) {
  ASSIGN_OR_RETURN(const store::GpuUsage read, store::ReadGpuUsage(store, selection));
  ASSIGN_OR_RETURN(const auto containers, store::ContainerNames::Read(store));
  ASSIGN_OR_RETURN(const Label label, ReadLabel(store, by.label, containers));
  const Namer namer(containers, label, read.devices);
  std::map<std::string, Group> by_name;
  for (const store::DeviceHolder& holder : read.holders) {
    Group& group = by_name[namer.Name(by.by, holder).substr(0, kMaxNameBytes)];
    if (holder.without_process.has_value())
      group.without_process_ns += holder.use.idle_ns;
    else
      group.processes.insert(holder.process);
    group.devices.insert(holder.device);
    group.use += holder.use;
    if (!holder.sampled_utilization.has_value()) continue;
    group.sampled_busy_ns += *holder.sampled_utilization * static_cast<double>(holder.use.held_ns);
    group.sampled_ns += static_cast<double>(holder.use.held_ns);
  }
  Usage usage{.range = read.range, .by = by, .groups = GroupsOf(std::move(by_name))};
  ASSIGN_OR_RETURN(usage.labels, ReadLabelNames(store));
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
    all.labels.merge(host.labels);
    for (const Group& group : host.groups) by_name[group.name] += group;
  }
  all.groups = GroupsOf(std::move(by_name));
  return all;
}

}  // namespace gpusonde::usage
