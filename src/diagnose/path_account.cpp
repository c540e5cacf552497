// SPDX-License-Identifier: Apache-2.0
#include "diagnose/path_account.h"

namespace gpusonde::diagnose {
namespace {

void AddScaled(const std::map<Id128, double>& times, double factor, std::map<Id128, double>& sums) {
  for (const auto& [who, ns] : times) sums[who] += factor * ns;
}

}  // namespace

void PathAccount::Add(const PathAccount& other, double factor) {
  states.Add(other.states, factor);
  idle.Add(other.idle, factor);
  between.Add(other.between, factor);
  loaders.Add(other.loaders, factor);
  launch_thread_asleep += factor * other.launch_thread_asleep;
  packets += factor * other.packets;
  own_threads += factor * other.own_threads;
  own_threads_idle += factor * other.own_threads_idle;
  for (const auto& [who, rank] : other.ranks) {
    RankAccount& sum = ranks[who];
    sum.states.Add(rank.states, factor);
    sum.idle += factor * rank.idle;
    AddScaled(rank.behind, factor, sum.behind);
  }
  AddScaled(other.behind, factor, behind);
  AddScaled(other.halted, factor, halted);
  AddScaled(other.stopped_by, factor, stopped_by);
  AddScaled(other.ran, factor, ran);
  AddScaled(other.slept, factor, slept);
  AddScaled(other.waited_outside, factor, waited_outside);
  AddScaled(other.loaders_behind, factor, loaders_behind);
}

double PathAccount::RemoveIdle(bool with_sleeps_of_others) {
  Account kept;
  if (with_sleeps_of_others)
    slept.clear();  // all of these are idle time
  else
    kept[State::kSleeping] = others_asleep();
  idle.Add(kept, -1);
  const double removed = idle.total();
  states.Add(idle, -1);
  between.Add(idle, 1);
  idle = kept;
  waited_outside.clear();  // as these are
  launch_thread_asleep = packets = 0;
  return removed;
}

}  // namespace gpusonde::diagnose
