// SPDX-License-Identifier: Apache-2.0
#include "agent/container_rows.h"

#include <algorithm>
#include <set>

#include "model/batch_rows.h"
#include "model/cgroup_owner.h"
#include "model/tables/processes.h"

namespace gpusonde::agent {
namespace {

constexpr size_t kMaxContainers = 10'000;  // all are forgotten, and written again, when there are more

}  // namespace

void ContainerRows::Ingest(const model::Batch& batch) {
  if (batch.table != model::kProcesses.name()) return;
  for (const model::Process& process : model::RowsOf(model::kProcesses, batch)) {
    const std::string id = model::OwnerOfCgroup(process.cgroup).container;
    if (id.empty()) continue;
    if (known_.size() > kMaxContainers) known_.clear();
    const auto [entry, is_new] = known_.try_emplace(id);
    Known& known = entry->second;
    known.source = process.source;
    if (const auto named = by_runtime_.by_id.find(id); named != by_runtime_.by_id.end()) {
      Write(id, named->second, known);
      continue;
    }
    unknown_ = unknown_ || is_new;
    if (known.tries_left == 0) continue;
    --known.tries_left;
    const std::optional<proc::ContainerName> found = find_(id);
    if (!found.has_value()) continue;
    known.tries_left = 0;
    rows_.Append({.container = id,
                  .source = process.source,
                  .name = found->name,
                  .pod = found->pod,
                  .pod_namespace = found->pod_namespace,
                  .pod_uid = {}});
  }
}

void ContainerRows::Update(pods::PodContainers containers) {
  by_runtime_ = std::move(containers);
  for (auto& [id, known] : known_)
    if (const auto named = by_runtime_.by_id.find(id); named != by_runtime_.by_id.end())
      Write(id, named->second, known);
}

void ContainerRows::Include(const pods::PodDevices& devices, const Id128& source) {
  std::set<std::pair<std::string_view, std::string_view>> holders;
  for (const pods::PodDevice& device : devices.devices) holders.emplace(device.pod_namespace, device.pod);
  for (const auto& [id, container] : by_runtime_.by_id) {
    if (!holders.contains({container.pod_namespace, container.pod})) continue;
    const auto [known, is_new] = known_.try_emplace(id);
    if (is_new) known->second.source = source;
    Write(id, container, known->second);
  }
}

void ContainerRows::Write(const std::string& id, const pods::PodContainer& container, Known& known) {
  if (known.written == container) return;
  rows_.Append({.container = id,
                .source = known.source,
                .name = container.name,
                .pod = container.pod,
                .pod_namespace = container.pod_namespace,
                .pod_uid = container.pod_uid});
  const auto append = [&](const std::string& name, const std::string& value) {
    labels_.Append({.container = id, .name = name, .value = value, .source = known.source});
  };
  for (const auto& [name, value] : container.labels) append(name, value);
  // A label that was removed is empty from now on.
  if (known.written.has_value())
    for (const auto& [name, value] : known.written->labels)
      if (std::ranges::find(container.labels, name, &std::pair<std::string, std::string>::first) ==
          container.labels.end())
        append(name, "");
  known.tries_left = 0;
  known.written = container;
}

std::optional<model::Batch> ContainerRows::DrainRows() {
  return rows_.rows() > 0 ? std::optional(rows_.Take()) : std::nullopt;
}

std::optional<model::Batch> ContainerRows::DrainLabels() {
  return labels_.rows() > 0 ? std::optional(labels_.Take()) : std::nullopt;
}

}  // namespace gpusonde::agent
