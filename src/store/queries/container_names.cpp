// SPDX-License-Identifier: Apache-2.0
#include "store/queries/container_names.h"
#include "store/sql/sql_part.h"

#include <cstddef>

namespace gpusonde::store {
namespace {

constexpr size_t kShortIdLength = 12;  // as `docker ps` and `crictl ps` show ids

}  // namespace

Result<ContainerNames> ContainerNames::Read(Store& store) {
  ContainerNames names;
  const SqlPart sql{"SELECT container, name, pod, pod_namespace FROM containers", {}};
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    names.by_id_[std::string(row.Text(0))] = {std::string(row.Text(1)), std::string(row.Text(2)),
                                              std::string(row.Text(3))};
  }));
  return names;
}

const ContainerName* ContainerNames::Find(std::string_view container) const {
  const auto found = by_id_.find(container);
  return found == by_id_.end() ? nullptr : &found->second;
}

std::string ContainerNames::PodOf(const model::CgroupOwner& owner) const {
  const ContainerName* found = Find(owner.container);
  if (found == nullptr || found->pod.empty()) return owner.pod_uid;
  return found->pod_namespace + "/" + found->pod;
}

std::string ContainerNames::ContainerOf(const model::CgroupOwner& owner) const {
  if (owner.container.empty()) return {};
  const ContainerName* found = Find(owner.container);
  const std::string name =
      found == nullptr || found->name.empty() ? owner.container.substr(0, kShortIdLength) : found->name;
  const std::string pod = PodOf(owner);
  return pod.empty() ? name : pod + "/" + name;
}

}  // namespace gpusonde::store
