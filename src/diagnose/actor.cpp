// SPDX-License-Identifier: Apache-2.0
#include "diagnose/actor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "base/printable.h"

namespace gpusonde::diagnose {
namespace {

// Command lines are shortened to this; the table `processes` has them in full.
constexpr size_t kMaxCommand = 80;  // characters

}  // namespace

void AddShare(Shares& shares, const Actor& actor, double amount) {
  const auto [share, is_new] = shares.try_emplace(actor, 0);
  share->second += amount;
  if (is_new || share->first.pid == actor.pid) return;
  auto several = shares.extract(share);
  several.key().pid = 0;
  several.key().command.clear();
  shares.insert(std::move(several));
}

std::vector<std::pair<Actor, double>> LargestRises(const Shares& before, const Shares& during, bool own) {
  std::vector<std::pair<Actor, double>> rose;
  for (const auto& [actor, value] : during) {
    if (actor.own != own || actor.name.empty()) continue;
    const auto was = before.find(actor);
    const double rise = value - (was == before.end() ? 0 : was->second);
    if (rise > 0) rose.emplace_back(actor, rise);
  }
  std::ranges::stable_sort(rose, std::greater{}, &std::pair<Actor, double>::second);
  return rose;
}

std::string NameActor(const Actor& actor) {
  std::string name = actor.name.empty() ? "an unknown process" : actor.name;
  if (actor.pid != 0) {
    const bool says_more = !actor.command.empty() && actor.command != actor.name;
    name += says_more ? fmt::format(" (process {}: {})", actor.pid, Shorten(actor.command, kMaxCommand))
                      : fmt::format(" (process {})", actor.pid);
  }
  return actor.cgroup.empty() ? name : fmt::format("{} in {}", name, actor.cgroup);
}

}  // namespace gpusonde::diagnose
