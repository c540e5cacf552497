// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The program may run on fewer CPUs than before, so that its threads wait for each other: somebody changed
// its affinity, or a cpuset of its cgroups, as Kubernetes' CPU manager does when pods come and go.
constexpr std::array kFewerCpusStates = {State::kRunQueueOwn};
constexpr std::array kFewerCpusExpectations = {
    Expectation{model::Metric::kProcessCpus, Expectation::Direction::kFalls, &kWeights.fewer_cpus.cpus_fall,
                &kWeights.fewer_cpus.cpus, "its threads may run on fewer CPUs than before"},
};

bool HasFewerCpus(const Situation& situation) {
  const Change cpus = situation.Of(model::Metric::kProcessCpus);
  return cpus.known() && -cpus.rise() > kWeights.fewer_cpus.min_fall * *cpus.before &&
         std::lround(*cpus.during) < std::lround(*cpus.before);
}

constexpr std::array kFewerCpusSupersedes = {
    Superseded{CauseId::kCpuContentionOwn, [](const Situation& situation) -> double {
                 return HasFewerCpus(situation) ? kWeights.fewer_cpus.over_own_contention : 0.0;
               }}};

std::optional<Finding> EvaluateFewerCpus(const Situation& situation) {
  if (!HasFewerCpus(situation)) return std::nullopt;
  const Change cpus = situation.Of(model::Metric::kProcessCpus);
  // To the nearest whole number, as the change lies within a second that is before and during.
  return Finding{.explained_ns = ExcessOf(situation, kFewerCpusStates),
                 .sentence = fmt::format("the program may run on {} ({} before), on which its threads "
                                         "waited for each other {}",
                                         Cpus(std::round(*cpus.during)), Cpus(std::round(*cpus.before)),
                                         ShareOf(situation, State::kRunQueueOwn))};
}

}  // namespace

const Cause& FewerCpus() {
  static constexpr Cause kCause{
      CauseId::kFewerCpus,
      "fewer_cpus",
      "Fewer CPUs",
      "Find out who changed its affinity (taskset -ap PID) or its cgroup's cpuset (cpuset.cpus).",
      kFewerCpusStates,
      kFewerCpusExpectations,
      kFewerCpusSupersedes,
      EvaluateFewerCpus};
  return kCause;
}

}  // namespace gpusonde::diagnose
