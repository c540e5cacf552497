// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>

#include "base/id128.h"
#include "diagnose/situation.h"
#include "model/tables/processes.h"

namespace gpusonde::diagnose {

// Who the processes are, and who descends from whom. Not thread-safe.
class Parties {
 public:
  void Take(const model::Process& process);

  // Null for one that no row told of.
  const model::Process* Find(const Id128& process) const;

  // The process and all its descendants that are known.
  std::set<Id128> FamilyOf(const Id128& process) const;

  // As a person wants it; nameless for an unknown process and for the zero id.
  Party PartyOf(const Id128& process, const std::set<Id128>& family) const;

  // Nobody will ask for those that had ended by then, but for parents of those that live.
  void ForgetEndedBefore(int64_t time_ns);

 private:
  bool HasChildren(const model::Process& parent) const;
  void Forget(const Id128& process);

  std::unordered_map<Id128, model::Process> processes_;
  std::multimap<int32_t, Id128> children_;  // by the parent's pid
  std::multimap<int64_t, Id128> ended_;     // by when, or when to look again
};

}  // namespace gpusonde::diagnose
