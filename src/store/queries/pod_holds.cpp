// SPDX-License-Identifier: Apache-2.0
#include "store/queries/pod_holds.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "model/cgroup_owner.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {

Result<std::vector<PodHold>> ReadPodHolds(Store& store, const TimeRange& range,
                                          const std::map<std::string, std::vector<TimeRange>>& runs) {
  const SqlPart sql{
      "SELECT pod_devices.device, host, pod_namespace, pod, container, start_ns, end_ns "
      "FROM pod_devices JOIN sources ON sources.source = pod_devices.source "
      "WHERE pod_devices.device IN (SELECT device FROM devices) AND start_ns < ? "
      "AND coalesce(end_ns > ?, true) ORDER BY start_ns",
      {range.to_ns, range.from_ns}};
  std::map<std::tuple<Id128, std::string, HolderPod>, std::vector<TimeRange>> by_holder;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    std::string host(row.Text(1));
    const auto of_host = runs.find(host);
    if (of_host == runs.end()) return;
    TimeRange lasted{BoundTime(row.Int64(5)), BoundTime(row.IsNull(6) ? row.Int64(5) : row.Int64(6))};
    if (row.IsNull(6)) {
      const auto run = std::ranges::find_if(
          of_host->second, [&](const TimeRange& each) { return each.to_ns >= lasted.from_ns; });
      if (run != of_host->second.end()) lasted.to_ns = run->to_ns;
    }
    if (lasted.from_ns >= lasted.to_ns) return;
    HolderPod pod{std::string(row.Text(2)), std::string(row.Text(3)), std::string(row.Text(4))};
    AppendToUnion(lasted, by_holder[{row.Id(0), std::move(host), std::move(pod)}]);
  }));
  std::vector<PodHold> holds;
  for (auto& [holder, lasted] : by_holder) {
    const auto& [device, host, pod] = holder;
    std::vector<TimeRange> held = Intersect(UnionOf(lasted, range), runs.at(host));
    if (held.empty()) continue;
    holds.push_back(
        {.id =
             IdHasher("pod_holder").Add(host).Add(pod.pod_namespace).Add(pod.pod).Add(pod.container).Finish(),
         .device = device,
         .host = host,
         .pod = pod,
         .held = std::move(held)});
  }
  return holds;
}

bool MayBeOf(std::string_view cgroup, const HolderPod& pod, const ContainerNames& names) {
  const model::CgroupOwner owner = model::OwnerOfCgroup(cgroup);
  const ContainerName* found = names.Find(owner.container);
  if (found == nullptr || found->pod.empty()) return !owner.pod_uid.empty();
  return found->pod_namespace == pod.pod_namespace && found->pod == pod.pod;
}

}  // namespace gpusonde::store
