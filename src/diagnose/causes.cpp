// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/printable.h"
#include "diagnose/cause.h"

namespace gpusonde::diagnose {

const Cause& BlockIo();
const Cause& CpuContention();
const Cause& CpuContentionOwn();
const Cause& CpuQuota();
const Cause& GpuClocks();
const Cause& GpuFault();
const Cause& GpuNeighbour();
const Cause& Hang();
const Cause& HostSteal();
const Cause& InterruptPressure();
const Cause& IoThrottling();
const Cause& MemoryPressure();
const Cause& NetworkContention();
const Cause& PacketLoss();
const Cause& PciePressure();
const Cause& SlowCpu();
const Cause& SlowDataLoading();
const Cause& Straggler();

namespace {

// A cause that explains this share of the excess and has no other evidence gets a confidence of 0.5. It
// separates labels from other causes in 41 trials of the benchmark's train split.
constexpr double kEvenShare = 0.36;
// Weight of the explained share; chosen so that a cause that explains 90 % has a confidence of 0.96.
constexpr double kShareNats = 6;

double Weigh(const Expectation& expected, const Change& change) {
  if (!change.known()) return 0;
  double met = 0;
  switch (expected.direction) {
    case Expectation::Direction::kRises:
      met = std::clamp(change.rise() / expected.scale, 0.0, 1.0);
      break;
    case Expectation::Direction::kFalls:
      met = *change.before > 0 ? std::clamp(-change.rise() / (expected.scale * *change.before), 0.0, 1.0) : 0;
      break;
    case Expectation::Direction::kStays:
      met = 1 - std::clamp(std::abs(change.rise()) / expected.scale, 0.0, 1.0);
      break;
  }
  return expected.nats * (2 * met - 1);
}

}  // namespace

std::span<const Cause* const> AllCauses() {
  static const std::array kCauses = {
      &BlockIo(),           &CpuContention(),     &CpuContentionOwn(), &CpuQuota(),
      &GpuClocks(),         &GpuFault(),          &GpuNeighbour(),     &Hang(),
      &HostSteal(),         &InterruptPressure(), &IoThrottling(),     &MemoryPressure(),
      &NetworkContention(), &PacketLoss(),        &PciePressure(),     &SlowCpu(),
      &SlowDataLoading(),   &Straggler()};
  return kCauses;
}

std::vector<Candidate> Rank(const Situation& situation) {
  std::vector<Candidate> ranked;
  // Relative to all states that have grown, so that states that shrank (waits for the GPU while the CPU was
  // the bottleneck) don't inflate a cause, and shares sum to at most one.
  const double lost_ns = situation.lost_ns();
  if (situation.excess_ns() <= 0 || situation.before.total() <= 0) return ranked;
  for (const Cause* cause : AllCauses()) {
    std::optional<Finding> finding = cause->evaluate(situation);
    if (!finding.has_value() || finding->explained_ns <= 0) continue;
    for (const Expectation& expected : cause->expectations) {
      const Change change = situation.Of(expected.signal);
      const double nats = Weigh(expected, change);
      finding->nats += nats;
      if (nats != 0)
        finding->signal_evidence.push_back(
            {expected.signal, change, nats,
             fmt::format("{}: {}", model::InfoOf(expected.signal).label,
                         nats > 0 ? expected.why : "not as this cause predicts")});
    }
    const double share = std::clamp(finding->explained_ns / lost_ns, 0.0, 1.0);
    const double nats = kShareNats * (share - kEvenShare) + finding->nats;
    ranked.push_back({cause, *std::move(finding), share, 1 / (1 + std::exp(-nats))});
  }
  std::ranges::stable_sort(ranked, [](const Candidate& a, const Candidate& b) {
    return a.confidence * a.share > b.confidence * b.share;
  });
  return ranked;
}

double ExcessOf(const Situation& situation, std::span<const State> states) {
  double sum = 0;
  for (const State state : states) sum += situation.excess(state);
  return std::max(sum, 0.0);
}

bool IsUniformlySlower(const Situation& situation) {
  constexpr double kSlower = 0.1;
  constexpr double kAlike = 3;  // factor: memory contention slows some code more than other code
  const auto slower = [](double before, double during) { return before > 0 ? during / before - 1 : 0; };
  const double launch_thread = slower(situation.before[State::kCpu], situation.during[State::kCpu]);
  if (situation.loader_cpu_before <= 0) return launch_thread > kSlower;
  const double loader = slower(situation.loader_cpu_before, situation.loader_cpu_during);
  return std::min(launch_thread, loader) > kSlower &&
         std::max(launch_thread, loader) < kAlike * std::min(launch_thread, loader);
}

bool IsReclaimingMemory(const Situation& situation) {
  return situation.excess(State::kReclaim) > situation.excess_ns() / 20;
}

// Command lines are shortened to this; the table `processes` has them in full.
constexpr size_t kMaxCommand = 80;  // characters

std::string NameActor(const Actor& actor) {
  std::string name = actor.name.empty() ? "an unknown process" : actor.name;
  if (actor.pid != 0) {
    const bool says_more = !actor.command.empty() && actor.command != actor.name;
    name += says_more ? fmt::format(" (process {}: {})", actor.pid, Shorten(actor.command, kMaxCommand))
                      : fmt::format(" (process {})", actor.pid);
  }
  return actor.cgroup.empty() ? name : fmt::format("{} in {}", name, actor.cgroup);
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

}  // namespace gpusonde::diagnose
