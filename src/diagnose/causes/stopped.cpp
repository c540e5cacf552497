// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "diagnose/cause.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The program is stopped and continued from outside: by SIGSTOP (cpulimit, a batch scheduler), by a debugger
// or a tracer, or with its cgroup (docker pause). The kernel reports who let it continue, who nearly always
// also stopped it.
constexpr std::array kStoppedStates = {State::kStopped};

std::optional<Finding> EvaluateStopped(const Situation& situation) {
  Finding finding{.explained_ns = ExcessOf(situation, kStoppedStates), .nats = kWeights.stopped.stopped};
  const std::string share = ShareOf(situation, State::kStopped);
  const std::optional<Actor> helper = StoppedHelper(situation);
  finding.sentence = helper.has_value() ? fmt::format("the step waited {} for {}, which was stopped {}",
                                                      share, NameActor(*helper), kStoppers)
                                        : fmt::format("the step was stopped {}, {}", share, kStoppers);
  finding.sentence += LetContinue(situation);
  return finding;
}

}  // namespace

const Cause& Stopped() {
  static constexpr Cause kCause{CauseId::kStopped,
                                "stopped",
                                "Stopped",
                                "Find out who stops it: a debugger or tracer (TracerPid in "
                                "/proc/PID/status), SIGSTOP, a frozen cgroup.",
                                kStoppedStates,
                                {},
                                {},
                                EvaluateStopped};
  return kCause;
}

}  // namespace gpusonde::diagnose
