// SPDX-License-Identifier: Apache-2.0
#include "diagnose/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/time.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

constexpr double kMaxUnexplained = 0.4;
constexpr double kMinConfidence = 0.5;

std::string ClockOf(int64_t epoch_ns) {
  return FormatUtc(epoch_ns).substr(11, 8);  // "12:01:03" of "2026-11-21T12:01:03.123Z"
}

// The state with the largest excess, for incidents without a cause.
State LargestExcess(const Situation& situation) {
  State largest = State::kUnexplained;
  for (size_t i = 0; i < kStates; ++i)
    if (const auto state = static_cast<State>(i); situation.excess(state) > situation.excess(largest))
      largest = state;
  return largest;
}

std::string Abstain(const Situation& situation) {
  if (!situation.signals_known) return "No cause: no host signals of this program were received";
  if (situation.before.total() <= 0) return "No cause: there are no clean steps to compare with";
  const State largest = LargestExcess(situation);
  const double excess_ns = situation.excess_ns();
  if (excess_ns <= 0) return "No cause: steps are back to normal";
  return fmt::format("No known cause explains it: {} of the {} that each step lost are in \"{}\"",
                     Percent(situation.excess(largest), situation.lost_ns()), Millis(situation.lost_ns()),
                     model::InfoOf(MetricOf(largest)).label);
}

// "Steps slowed 2.2×". For an unfinished step with a large ratio, which only says how long it has lasted, the
// time.
std::string HowSlow(const Situation& situation, double slowdown) {
  constexpr double kHugeRatio = 10;
  if (situation.unfinished && slowdown >= kHugeRatio && situation.before.total() > 0)
    return fmt::format("A step has taken {:.1f} s (usually {})", situation.during.total() / 1e9,
                       Millis(situation.before.total()));
  if (!situation.unfinished && slowdown < 1.005) return "Steps were slow";  // recovered on average
  return fmt::format("{} {:.{}f}×{}", situation.unfinished ? "A step has taken" : "Steps slowed", slowdown,
                     slowdown < 1.1 ? 2 : 1, situation.unfinished ? " its usual time" : "");
}

void AddAccount(const Situation& situation, Report& report) {
  for (size_t i = 0; i < kStates; ++i) {
    const auto state = static_cast<State>(i);
    if (situation.before[state] <= 0 && situation.during[state] <= 0) continue;
    const model::MetricInfo& info = model::InfoOf(MetricOf(state));
    report.evidence.push_back(
        {.incident = report.incident.incident,
         .signal = std::string(info.name),
         .before = situation.before[state],
         .during = situation.during[state],
         .score = 0,
         .sentence = fmt::format("{}: {} per step ({} before)", info.label, Millis(situation.during[state]),
                                 Millis(situation.before[state]))});
  }
}

void AddCauses(Report& report) {
  for (const Candidate& candidate : report.causes)
    report.evidence.push_back({.incident = report.incident.incident,
                               .signal = fmt::format("cause.{}", candidate.cause->name),
                               .before = std::nullopt,
                               .during = candidate.share,
                               .score = std::log(candidate.confidence / (1 - candidate.confidence)),
                               .sentence = fmt::format("{} ({:.2f}): {}", candidate.cause->title,
                                                       candidate.confidence, candidate.finding.sentence)});
}

// Adds the causes in other ranks that are behind this program's.
void AddRoots(Report& report) {
  for (const Candidate& candidate : report.causes)
    if (!candidate.finding.root.empty())
      report.evidence.push_back({.incident = report.incident.incident,
                                 .signal = fmt::format("root.{}", candidate.finding.root),
                                 .before = std::nullopt,
                                 .during = candidate.share,
                                 .score = 0,
                                 .sentence = candidate.finding.sentence});
}

void AddSignalEvidence(Report& report) {
  if (report.causes.empty()) return;
  for (const SignalEvidence& witness : report.causes.front().finding.signal_evidence)
    report.evidence.push_back({.incident = report.incident.incident,
                               .signal = std::string(model::InfoOf(witness.signal).name),
                               .before = witness.change.before,
                               .during = witness.change.during,
                               .score = witness.nats,
                               .sentence = witness.sentence});
}

}  // namespace

void Explain(const Situation& situation, Report& report) {
  model::Incident& incident = report.incident;
  double unexplained =
      std::max(0.0, situation.excess(State::kUnexplained) + situation.excess(State::kWaiting));
  // A hang explains unexplained time: the threads do nothing.
  if (!report.causes.empty() && std::ranges::find(report.causes.front().cause->states, State::kUnexplained) !=
                                    report.causes.front().cause->states.end())
    unexplained = 0;
  const bool likely = !report.causes.empty() && report.causes.front().confidence >= kMinConfidence;
  std::string why;
  if (likely && unexplained <= kMaxUnexplained * situation.lost_ns()) {
    const Candidate& first = report.causes.front();
    incident.cause = first.cause->name;
    incident.confidence = first.confidence;
    why = fmt::format("{} ({:.2f}): {}", first.cause->title, first.confidence, first.finding.sentence);
    for (size_t i = 1; i < report.causes.size(); ++i)
      if (const Candidate& also = report.causes[i]; also.confidence >= kMinConfidence)
        why +=
            fmt::format(". Also {} ({:.2f}): {}", also.cause->title, also.confidence, also.finding.sentence);
  } else {
    incident.cause = kAbstain;
    incident.confidence = report.causes.empty() ? 1 : 1 - report.causes.front().confidence;
    why = Abstain(situation);
  }
  incident.sentence =
      fmt::format("{} from {}. {}.", HowSlow(situation, incident.slowdown), ClockOf(incident.start_ns), why);
  report.evidence.clear();
  AddAccount(situation, report);
  AddCauses(report);
  AddRoots(report);
  AddSignalEvidence(report);
}

}  // namespace gpusonde::diagnose
