// SPDX-License-Identifier: Apache-2.0
#include "usage/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"
#include "base/utf8.h"
#include "model/cgroup_owner.h"
#include "store/sql/sql_part.h"

namespace gpusonde::usage {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxLabels = 100;
constexpr std::string_view kLabelPrefix = "label:";
// What a container without a process has of a process is unknown.
constexpr std::string_view kNoProcess = "no process";

bool IsInterpreter(std::string_view program) {
  constexpr std::array kInterpreters = {"python", "pypy", "ruby", "node", "perl", "julia", "bash", "sh"};
  return std::ranges::any_of(kInterpreters, [&](std::string_view interpreter) {
    return program.starts_with(interpreter) &&
           program.find_first_not_of("0123456789.", interpreter.size()) == std::string_view::npos;
  });
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

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

std::string ApplicationOf(std::string_view name, std::string_view command) {
  const std::string_view program = BaseName(TakeWord(command));
  if (!IsInterpreter(program)) return std::string(program.empty() ? name : program);
  while (true) {
    const std::string_view word = TakeWord(command);
    if (word.empty() || word == "-c") return std::string(program);
    if (word == "-m") return std::string(TakeWord(command));
    if (!word.starts_with('-')) return std::string(BaseName(word));
  }
}

Result<HolderNamer> HolderNamer::Read(store::Store& store, std::vector<store::GpuDevice> devices) {
  HolderNamer namer;
  namer.devices_ = std::move(devices);
  ASSIGN_OR_RETURN(namer.containers_, store::ContainerNames::Read(store));
  const store::SqlPart sql{"SELECT name, container, value FROM pod_labels ORDER BY name", {}};
  TRY(store::ForEachRow(store, sql, [&](const store::Rows& row) {
    if (namer.labels_.size() < kMaxLabels) namer.labels_.emplace(Utf8Prefix(row.Text(0), kMaxNameBytes));
    if (row.Text(2).empty()) return;
    Label& label = namer.by_label_[std::string(row.Text(0))];
    label.by_container[std::string(row.Text(1))] = std::string(row.Text(2));
    if (const auto* container = namer.containers_.Find(row.Text(1));
        container != nullptr && !container->pod.empty())
      label.by_pod[{container->pod_namespace, container->pod}] = std::string(row.Text(2));
  }));
  return namer;
}

std::string HolderNamer::Name(const SumBy& by, const store::HolderFacts& holder) const {
  std::string name = holder.without_process.has_value() ? NameOfPod(by, holder, *holder.without_process)
                                                        : NameOfProcess(by, holder);
  name.resize(Utf8Prefix(name, kMaxNameBytes).size());
  return name;
}

std::string HolderNamer::NameOfProcess(const SumBy& by, const store::HolderFacts& holder) const {
  const model::CgroupOwner owner = model::OwnerOfCgroup(holder.cgroup);
  switch (by.by) {
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
      const auto label = by_label_.find(by.label);
      if (label == by_label_.end()) return {};
      const auto value = label->second.by_container.find(owner.container);
      return value == label->second.by_container.end() ? "" : value->second;
    }
    case By::kJob:
      return owner.slurm_job;
    case By::kService:
      return owner.service;
    case By::kUser:
      return holder.user_id.has_value() ? std::to_string(*holder.user_id) : "";
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

// A container that has a device allocated, and no process on it.
std::string HolderNamer::NameOfPod(const SumBy& by, const store::HolderFacts& holder,
                                   const store::HolderPod& pod) const {
  std::string name = pod.pod_namespace + "/" + pod.pod;
  switch (by.by) {
    case By::kOwner:
      return "pod " + name;
    case By::kPod:
      return name;
    case By::kNamespace:
      return pod.pod_namespace;
    case By::kContainer:
      return name + "/" + pod.container;
    case By::kLabel: {
      const auto label = by_label_.find(by.label);
      if (label == by_label_.end()) return {};
      const auto value = label->second.by_pod.find({pod.pod_namespace, pod.pod});
      return value == label->second.by_pod.end() ? "" : value->second;
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

std::string HolderNamer::OwnerName(const store::HolderFacts& holder, const model::CgroupOwner& owner) const {
  if (const std::string pod = containers_.PodOf(owner); !pod.empty()) return "pod " + pod;
  if (!owner.slurm_job.empty()) return "job " + owner.slurm_job;
  if (!owner.container.empty()) return "container " + containers_.ContainerOf(owner);
  // What a user starts in a desktop or by SSH belongs to the user.
  if (!owner.service.empty() && !owner.service.starts_with("user@")) return "service " + owner.service;
  return holder.user_id.has_value() ? fmt::format("user {}", *holder.user_id) : "unknown user";
}

std::string HolderNamer::DeviceName(const Id128& id) const {
  const auto device = std::ranges::find(devices_, id, &store::GpuDevice::device);
  if (device == devices_.end() || device->ordinal < 0) return "GPU of an unknown number";
  return fmt::format("GPU {} {} {}", device->ordinal, device->name, device->uuid);
}

}  // namespace gpusonde::usage
