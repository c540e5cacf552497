// SPDX-License-Identifier: Apache-2.0
#include "store/queries/process_facts.h"

#include <algorithm>
#include <vector>

#include "model/cgroup_owner.h"
#include "store/queries/container_names.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {

Result<model::ProcessFactsById> ReadProcessFacts(Store& store, const model::Profile& profile) {
  std::vector<Id128> ids;
  for (const model::Profile::Thread& thread : profile.threads) ids.push_back(thread.process);
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  ASSIGN_OR_RETURN(const ContainerNames containers, ContainerNames::Read(store));
  const SqlPart sql{
      "SELECT process, executable, cgroup, host FROM processes LEFT JOIN sources "
      "ON sources.source = processes.source WHERE process IN (SELECT unnest(?::UUID[]))",
      {std::move(ids)}};
  model::ProcessFactsById facts;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    model::ProcessFacts& of = facts[row.Id(0)];
    of.executable = row.Text(1);
    of.container = model::OwnerOfCgroup(row.Text(2)).container;
    of.host = row.Text(3);
    const ContainerName* named = containers.Find(of.container);
    if (named == nullptr) return;
    of.container_name = named->name;
    of.pod = named->pod;
    of.pod_namespace = named->pod_namespace;
  }));
  return facts;
}

}  // namespace gpusonde::store
