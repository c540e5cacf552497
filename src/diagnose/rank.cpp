// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "diagnose/causes/weights.h"

namespace gpusonde::diagnose {
namespace {

double Weigh(const Expectation& expected, const Change& change) {
  if (!change.known()) return 0;
  const double scale = *expected.scale;
  double met = 0;
  switch (expected.direction) {
    case Expectation::Direction::kRises:
      met = std::clamp(change.rise() / scale, 0.0, 1.0);
      break;
    case Expectation::Direction::kFalls:
      met = *change.before > 0 ? std::clamp(-change.rise() / (scale * *change.before), 0.0, 1.0) : 0;
      break;
    case Expectation::Direction::kStays:
      met = 1 - std::clamp(std::abs(change.rise()) / scale, 0.0, 1.0);
      break;
  }
  return *expected.nats * (2 * met - 1);
}

void AddSignalEvidence(const Cause& cause, const Situation& situation, Finding& finding) {
  for (const Expectation& expected : cause.expectations) {
    const Change change = situation.Of(expected.signal);
    const double nats = Weigh(expected, change);
    finding.nats += nats;
    if (nats != 0)
      finding.signal_evidence.push_back(
          {expected.signal, change, nats,
           fmt::format("{}: {}", model::InfoOf(expected.signal).label,
                       nats > 0 ? expected.why : "not as this cause predicts")});
  }
}

// Evidence against each cause by those that supersede it here, nats.
std::array<double, kCauses> SupersededBy(const Situation& situation) {
  std::array<double, kCauses> against{};
  for (const Cause* cause : AllCauses())
    for (const Superseded& other : cause->supersedes)
      against[static_cast<size_t>(other.cause)] += other.nats(situation);
  return against;
}

double RankOf(const Candidate& candidate) { return candidate.confidence * candidate.share; }

}  // namespace

std::vector<Candidate> Rank(const Situation& situation) {
  std::vector<Candidate> ranked;
  // Relative to all states that have grown, so that states that shrank (waits for the GPU while the CPU was
  // the bottleneck) don't inflate a cause, and shares sum to at most one.
  const double lost_ns = situation.lost_ns();
  if (situation.excess_ns() <= 0 || situation.before.total() <= 0) return ranked;
  const std::array<double, kCauses> superseded = SupersededBy(situation);
  for (const Cause* cause : AllCauses()) {
    std::optional<Finding> finding = cause->evaluate(situation);
    if (!finding.has_value() || finding->explained_ns < kWeights.ranking.min_share * lost_ns) continue;
    finding->nats -= superseded[static_cast<size_t>(cause->id)];
    AddSignalEvidence(*cause, situation, *finding);
    const double share = std::clamp(finding->explained_ns / lost_ns, 0.0, 1.0);
    const double nats = kWeights.ranking.share * (share - kWeights.ranking.even_share) + finding->nats;
    ranked.push_back({cause, *std::move(finding), share, 1 / (1 + std::exp(-nats))});
  }
  std::ranges::stable_sort(ranked, std::greater{}, RankOf);
  return ranked;
}

void KeepFirst(CauseId named, std::vector<Candidate>& ranked) {
  const auto kept = std::ranges::find(ranked, named, [](const Candidate& each) { return each.cause->id; });
  if (kept == ranked.end() || kept->confidence < kWeights.ranking.min_confidence ||
      kept->share < kWeights.ranking.min_named ||
      RankOf(*kept) < kWeights.ranking.keep * RankOf(ranked.front()))
    return;
  std::rotate(ranked.begin(), kept, kept + 1);
}

}  // namespace gpusonde::diagnose
