// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "base/id128.h"
#include "diagnose/actor.h"
#include "model/tables/containers.h"
#include "model/tables/processes.h"

namespace gpusonde::diagnose {

// Names processes and tracks their descendants. Not thread-safe.
class Actors {
 public:
  void Ingest(const model::Process& process);

  // Names actors in this container by it from now on: "in pod train-7/worker (namespace ml)" instead of "in"
  // a cgroup.
  void NameContainer(const model::Container& container);

  // Returns null if no row of this process was ingested.
  const model::Process* Find(const Id128& process) const;

  // Returns the process and all its known descendants.
  std::set<Id128> FamilyOf(const Id128& process) const;

  // Returns the process as an actor; without a name for an unknown process or the zero id.
  Actor ActorOf(const Id128& process, const std::set<Id128>& family) const;

  // Drops the processes that ended before this time, except parents of live ones.
  void ForgetEndedBefore(int64_t time_ns);

 private:
  bool HasChildren(const model::Process& parent) const;
  void Forget(const Id128& process);
  void ForgetContainers();
  std::string PlaceOf(const std::string& cgroup) const;

  std::unordered_map<std::string, std::string> containers_;  // by id, as sentences name them
  std::unordered_map<Id128, model::Process> processes_;
  std::multimap<int32_t, Id128> children_;  // by the parent's pid
  std::multimap<int64_t, Id128> ended_;     // by the time they ended, or of the next attempt to drop them
};

}  // namespace gpusonde::diagnose
