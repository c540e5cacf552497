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

// A cause that explains this share of the excess, and of which nothing else is known, is as likely as not.
// Of 41 trials of the benchmark's train split it parts those that are labels from those that aren't.
constexpr double kEvenShare = 0.36;
// Nats for a share of one; chosen: with it a cause that explains nine tenths has a confidence of 0.96.
constexpr double kShareNats = 6;

double Weigh(const Case& expected, const Change& change) {
  if (!change.known()) return 0;
  double met = 0;
  switch (expected.expect) {
    case Case::Expect::kRises:
      met = std::clamp(change.rise() / expected.scale, 0.0, 1.0);
      break;
    case Case::Expect::kFalls:
      met = *change.before > 0 ? std::clamp(-change.rise() / (expected.scale * *change.before), 0.0, 1.0) : 0;
      break;
    case Case::Expect::kStays:
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
  // Of all that takes longer: what others made shorter (a wait for the GPU, while the CPU was lacking) makes
  // no cause larger than it is, and shares sum to one at most.
  const double lost_ns = situation.lost_ns();
  if (situation.excess_ns() <= 0 || situation.before.total() <= 0) return ranked;
  for (const Cause* cause : AllCauses()) {
    std::optional<Finding> finding = cause->look(situation);
    if (!finding.has_value() || finding->explained_ns <= 0) continue;
    for (const Case& expected : cause->cases) {
      const Change change = situation.Of(expected.signal);
      const double nats = Weigh(expected, change);
      finding->nats += nats;
      if (nats != 0)
        finding->witnesses.push_back(
            {expected.signal, change, nats,
             fmt::format("{}: {}", model::InfoOf(expected.signal).label,
                         nats > 0 ? expected.why : "not as this cause would have it")});
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

bool SlowerAllOver(const Situation& situation) {
  constexpr double kSlower = 0.1;
  constexpr double kAlike = 3;  // times: memory slows some code more than other
  const auto slower = [](double before, double during) { return before > 0 ? during / before - 1 : 0; };
  const double feeder = slower(situation.before[State::kCpu], situation.during[State::kCpu]);
  if (situation.loader_cpu_before <= 0) return feeder > kSlower;
  const double loader = slower(situation.loader_cpu_before, situation.loader_cpu_during);
  return std::min(feeder, loader) > kSlower && std::max(feeder, loader) < kAlike * std::min(feeder, loader);
}

bool ReadsAgain(const Situation& situation) {
  return situation.excess(State::kReclaim) > situation.excess_ns() / 20;
}

// Of a command line; the whole one is in the table `processes`.
constexpr size_t kMostCommand = 80;  // characters

std::string NameParty(const Party& party) {
  std::string name = party.name.empty() ? "somebody unknown" : party.name;
  if (party.pid != 0) {
    const bool says_more = !party.command.empty() && party.command != party.name;
    name += says_more ? fmt::format(" (process {}: {})", party.pid, Shorten(party.command, kMostCommand))
                      : fmt::format(" (process {})", party.pid);
  }
  return party.cgroup.empty() ? name : fmt::format("{} in {}", name, party.cgroup);
}

std::vector<std::pair<Party, double>> WhoRose(const Shares& before, const Shares& during, bool own) {
  std::vector<std::pair<Party, double>> rose;
  for (const auto& [party, value] : during) {
    if (party.own != own || party.name.empty()) continue;
    const auto was = before.find(party);
    const double rise = value - (was == before.end() ? 0 : was->second);
    if (rise > 0) rose.emplace_back(party, rise);
  }
  std::ranges::stable_sort(rose, std::greater{}, &std::pair<Party, double>::second);
  return rose;
}

}  // namespace gpusonde::diagnose
