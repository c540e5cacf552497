// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusonde::diagnose {

// Who used a resource. Processes of the same name in the same cgroup count as one actor.
struct Actor {
  std::string name;
  std::string cgroup;  // its path, or the name of its container
  bool own = false;    // belongs to the slow workload
  // The process; 0 and "" if there are several or it is unknown. Not part of an actor's identity.
  int32_t pid = 0;
  std::string command;

  auto operator<=>(const Actor& other) const {
    return std::tie(name, cgroup, own) <=> std::tie(other.name, other.cgroup, other.own);
  }
  bool operator==(const Actor& other) const { return (*this <=> other) == 0; }
};

// Whether it is gpusonde itself: a process that profiles, or one of its child processes.
inline bool IsSelf(const Actor& actor) {
  return actor.name == "gpusonde" || actor.name == "gpusonde-files" || actor.name == "gpusonde-lines";
}

// The amount that each actor used.
using Shares = std::map<Actor, double>;

// Adds `amount` to the actor's share.
void AddShare(Shares& shares, const Actor& actor, double amount);

// Returns the actors whose share rose and by how much, the largest rise first: either those of the workload
// (`own`) or the others.
std::vector<std::pair<Actor, double>> LargestRises(const Shares& before, const Shares& during, bool own);

// Returns the actor as text for sentences: "38 ms of each step were taken by stress-ng in /batch.slice".
std::string NameActor(const Actor& actor);

}  // namespace gpusonde::diagnose
