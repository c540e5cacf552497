// SPDX-License-Identifier: Apache-2.0
#include "agent/container_rows.h"

#include "model/batch_rows.h"
#include "model/cgroup_owner.h"
#include "model/tables/processes.h"

namespace gpusonde::agent {
namespace {

constexpr int32_t kTries = 5;
constexpr size_t kMaxContainers = 10'000;  // all are forgotten, and written again, when there are more

}  // namespace

void ContainerRows::Ingest(const model::Batch& batch) {
  if (batch.table != model::kProcesses.name()) return;
  for (const model::Process& process : model::RowsOf(model::kProcesses, batch)) {
    const std::string id = model::OwnerOfCgroup(process.cgroup).container;
    if (id.empty()) continue;
    if (tries_left_.size() > kMaxContainers) tries_left_.clear();
    int32_t& tries_left = tries_left_.try_emplace(id, kTries).first->second;
    if (tries_left == 0) continue;
    --tries_left;
    const std::optional<proc::ContainerName> found = find_(id);
    if (!found.has_value()) continue;
    tries_left = 0;
    rows_.Append({.container = id,
                  .source = process.source,
                  .name = found->name,
                  .pod = found->pod,
                  .pod_namespace = found->pod_namespace});
  }
}

std::optional<model::Batch> ContainerRows::DrainRows() {
  return rows_.rows() > 0 ? std::optional(rows_.Take()) : std::nullopt;
}

}  // namespace gpusonde::agent
