// SPDX-License-Identifier: Apache-2.0
#include "store/queries/process_facts.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "model/cgroup_owner.h"
#include "store/queries/container_names.h"

namespace gpusonde::store {

Result<model::ProcessFactsById> ReadProcessFacts(Store& store, const model::Profile& profile) {
  std::vector<Id128> ids;
  for (const model::Profile::Thread& thread : profile.threads) ids.push_back(thread.process);
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  ASSIGN_OR_RETURN(const ContainerNames containers, ContainerNames::Read(store));
  const Parameter parameters[] = {std::move(ids)};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query("SELECT process, executable, cgroup, host FROM processes LEFT JOIN sources "
                  "ON sources.source = processes.source WHERE process IN (SELECT unnest(?::UUID[]))",
                  parameters));
  model::ProcessFactsById facts;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return facts;
    model::ProcessFacts& of = facts[rows->Id(0)];
    of.executable = rows->Text(1);
    of.container = model::OwnerOfCgroup(rows->Text(2)).container;
    of.host = rows->Text(3);
    const ContainerName* named = containers.Find(of.container);
    if (named == nullptr) continue;
    of.container_name = named->name;
    of.pod = named->pod;
    of.pod_namespace = named->pod_namespace;
  }
}

}  // namespace gpusonde::store
