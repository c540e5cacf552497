// SPDX-License-Identifier: Apache-2.0
#include "diagnose/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/demangle.h"
#include "base/time.h"
#include "diagnose/causes/weights.h"
#include "diagnose/causes/words.h"
#include "model/short_names.h"
#include "model/tables/incidents.h"

namespace gpusonde::diagnose {
namespace {

// The state with the largest excess, for incidents without a cause.
State LargestExcess(const Situation& situation) {
  State largest = State::kUnexplained;
  for (size_t i = 0; i < kStates; ++i)
    if (const auto state = static_cast<State>(i); situation.excess(state) > situation.excess(largest))
      largest = state;
  return largest;
}

constexpr double kMostOfWait = 0.5;

bool IsWait(State state) { return state == State::kWaiting || state == State::kSleeping; }

// The process that most of the time in this state was a wait for: one outside the program that ended most of
// the waits, or one of the program that slept meanwhile. Nullopt if none is known.
std::optional<Actor> ProcessWaitedFor(const Situation& situation, State state) {
  if (!IsWait(state)) return std::nullopt;
  const auto who = state == State::kWaiting
                       ? LargestRises(situation.outside_before, situation.outside_during, false)
                       : LargestRises(situation.slept_before, situation.slept_during, true);
  if (who.empty() || who.front().second < kMostOfWait * situation.excess(state)) return std::nullopt;
  return who.front().first;
}

// Whether most of the time in this state was a wait for other threads of the process, which waited as well.
bool WaitedForIdleOwnThreads(const Situation& situation, State state) {
  const double rise_ns = situation.own_threads_idle_during - situation.own_threads_idle_before;
  return state == State::kWaiting && rise_ns >= kMostOfWait * situation.excess(state);
}

// The same, if those slept by themselves.
bool WaitedForSleepOfOwnThreads(const Situation& situation, State state) {
  const double rise_ns = situation.own_threads_slept_during - situation.own_threads_slept_before;
  return state == State::kSleeping && rise_ns >= kMostOfWait * situation.excess(state);
}

// "they slept for 29 % of it, did nothing for 26 %, ran for 26 %": what other threads of the process did
// while the launch thread waited for them, the most first. Empty unless they did several things, which
// together are most of the lost time: one thread that sleeps with a lock lets others wait for it, and those
// that had it run.
std::string WhatOwnThreadsDid(const Situation& situation) {
  constexpr double kNoticeable = 0.1;  // of the lost time
  const double lost_ns = situation.lost_ns();
  std::vector<std::pair<double, std::string_view>> parts = {
      {situation.own_threads_slept_during - situation.own_threads_slept_before, "slept"},
      {situation.own_threads_idle_during - situation.own_threads_idle_before, "did nothing"},
      {situation.own_threads_during - situation.own_threads_before, "ran"}};
  std::erase_if(parts, [&](const auto& part) { return part.first < kNoticeable * lost_ns; });
  std::ranges::sort(parts, std::greater());
  double sum_ns = 0;
  std::string text;
  for (const auto& [ns, did] : parts) {
    text += fmt::format("{} {} for {}{}", text.empty() ? "they" : ",", did, Percent(ns, lost_ns),
                        text.empty() ? " of it" : "");
    sum_ns += ns;
  }
  return parts.size() < 2 || sum_ns < kMostOfWait * lost_ns ? "" : text;
}

// "; loader (process 12) of the program had ended", if one had, after a wait for nobody.
std::string WhoHadEnded(const Situation& situation, State state) {
  if (!IsWait(state)) return "";
  const auto ended = std::ranges::find_if(situation.helpers, &HelperPart::ended);
  return ended == situation.helpers.end() ? "" : fmt::format("; {} of the program had ended", ended->name);
}

bool IsOnGpu(State state) { return state == State::kGpuRun || state == State::kGpuCopy; }

// What has grown on the GPU, most first: those that have grown at least a fifth as much as the first, where
// the lost time is the GPU's.
std::vector<std::pair<std::string, Change>> GrownOnGpu(const Situation& situation, State state) {
  constexpr size_t kMaxNamed = 3;
  constexpr double kOfTheFirst = 0.2, kOfTheExcess = 0.1;
  if (!IsOnGpu(state)) return {};
  std::vector<std::pair<std::string, Change>> grown(situation.gpu_time.begin(), situation.gpu_time.end());
  std::ranges::sort(grown, std::greater(), [](const auto& each) { return each.second.rise(); });
  const double least = grown.empty() ? 0
                                     : std::max(kOfTheFirst * grown.front().second.rise(),
                                                kOfTheExcess * situation.excess(state));
  std::erase_if(grown, [&](const auto& each) { return each.second.rise() < least; });
  grown.resize(std::min(grown.size(), kMaxNamed));
  return grown;
}

// ": gemm takes 15 ms of a step (3.1 ms before), copies htod takes 4.0 ms of a step (1.0 ms before)".
std::string WhatHasGrown(const Situation& situation, State state) {
  const auto grown = GrownOnGpu(situation, state);
  std::vector<std::string> names;
  for (const auto& [name, change] : grown) names.push_back(Demangle(name));
  const model::ShortNames short_names({names.begin(), names.end()});
  std::string text;
  for (size_t i = 0; i < grown.size(); ++i) {
    const Change& change = grown[i].second;
    text += fmt::format("{}{} takes {} of a step ({} before)", i == 0 ? ": " : ", ", short_names(names[i]),
                        Time(*change.during), Time(*change.before));
  }
  return text;
}

// Whether it can be said where the lost time went: without signals of the host only if it went to the GPU.
bool IsAccounted(const Situation& situation) {
  return situation.signals_known ||
         (situation.before.total() > 0 && situation.excess_ns() > 0 && IsOnGpu(LargestExcess(situation)));
}

std::string Abstain(const Situation& situation) {
  constexpr std::string_view kNoSignals = "no host signals of this program were received";
  if (!IsAccounted(situation)) return fmt::format("No cause: {}", kNoSignals);
  if (situation.before.total() <= 0) return "No cause: there are no clean steps to compare with";
  if (situation.excess_ns() <= 0) return "No cause: steps are back to normal";
  const State largest = LargestExcess(situation);
  const std::string amount =
      fmt::format("{} of the {} that each step lost", Percent(situation.excess(largest), situation.lost_ns()),
                  Time(situation.lost_ns()));
  if (const std::optional<Actor> who = ProcessWaitedFor(situation, largest))
    return fmt::format("Waiting for {}{} took {}; no known cause explains that", NameActor(*who),
                       largest == State::kSleeping ? ", which slept," : "", amount);
  if (const std::string did = WhatOwnThreadsDid(situation); !did.empty())
    return fmt::format(
        "Waiting for other threads of the program took most of the {} that each step lost: {}; "
        "no known cause explains that",
        Time(situation.lost_ns()), did);
  if (WaitedForIdleOwnThreads(situation, largest))
    return fmt::format(
        "Waiting for other threads of the program, which did nothing, took {}; no known cause explains that",
        amount);
  if (WaitedForSleepOfOwnThreads(situation, largest))
    return fmt::format(
        "Waiting for other threads of the program, which slept, took {}; no known cause explains that",
        amount);
  if (largest == State::kSleeping && WhoHadEnded(situation, largest).empty())
    return fmt::format(
        "The program itself slept (nanosleep), as for a retry or to limit its rate, for {}; no known cause "
        "explains that",
        amount);
  if (largest == State::kUnexplained)
    return fmt::format("No known cause explains it: no signal says where {} went", amount);
  return fmt::format("No known cause explains it: {} are in \"{}\"{}{}{}", amount,
                     model::InfoOf(MetricOf(largest)).label, WhoHadEnded(situation, largest),
                     WhatHasGrown(situation, largest),
                     situation.signals_known ? "" : fmt::format("; {}", kNoSignals));
}

// Where to look next, after Abstain. Empty where nothing better is known than the account.
std::string NextStep(const Situation& situation) {
  if (situation.excess_ns() <= 0 || !IsAccounted(situation)) return "";
  if (!WhatOwnThreadsDid(situation).empty())
    return " One of them may hold a lock that the others need: the flame graph of the program's waits in "
           "this time shows where.";
  const State largest = LargestExcess(situation);
  switch (largest) {
    case State::kWaiting:
    case State::kSleeping:
      if (const std::optional<Actor> who = ProcessWaitedFor(situation, largest); who && who->pid != 0)
        return fmt::format(
            " Look at what that process does (gpusonde record --pid {}); the flame graph of the program's "
            "waits in this time shows where it waits for it.",
            who->pid);
      [[fallthrough]];
    case State::kBlocked:
      return " The flame graph of its waits in this time shows where in the program they are.";
    case State::kCpu:
    case State::kLoader:
      return " The flame graph of its CPU time, compared with a time before, shows what has grown.";
    case State::kNetwork:
      return " The other end of a connection, here or on another machine, was slow to answer or to read, or "
             "the way there: the flame graph of its waits in this time shows the code that waits, and "
             "`ss -tip` its connections.";
    case State::kGpuQueue:
      return " The GPU did not run what was queued: look for other programs on it (gpusonde top), and for "
             "errors of its driver (dmesg).";
    case State::kGpuRun:
    case State::kGpuCopy:
      return GrownOnGpu(situation, largest).empty()
                 ? " Its GPU time, compared with a time before, shows which kernels or copies have grown."
                 : " The flame graph of its GPU time shows the code that launched them.";
    default:
      return "";
  }
}

// Whether the step that hasn't ended is most of the incident's time, and not one of many slow ones.
bool IsMostlyUnfinished(const Situation& situation) {
  return situation.unfinished &&
         2 * situation.unfinished_ns >= situation.during.total() * static_cast<double>(situation.steps);
}

// "Steps slowed 2.2×", "Steps of thread 412 slowed 2.2×". With a large ratio, which only says how long a step
// has lasted, the times.
std::string HowSlow(const Situation& situation) {
  constexpr double kHugeRatio = 10, kNearlyAll = 0.9;
  const std::string whose = situation.tid == 0 ? "" : fmt::format(" of thread {}", situation.tid);
  const bool unfinished = IsMostlyUnfinished(situation);
  const double usual_ns = situation.before.total();
  const double ns = unfinished ? situation.unfinished_ns : situation.during.total();
  const double slowdown = usual_ns > 0 && unfinished ? ns / usual_ns : situation.slowdown;
  if (usual_ns > 0 && slowdown >= kHugeRatio) {
    // A few steps of which one waited nearly all of the time: their mean is no step's length.
    const double all_ns = ns * static_cast<double>(situation.steps);
    if (!unfinished && situation.steps > 1 && situation.idle_ns >= kNearlyAll * all_ns)
      return fmt::format("A step{} took {} (usually {})", whose,
                         Time(all_ns - static_cast<double>(situation.steps - 1) * usual_ns), Time(usual_ns));
    if (unfinished || situation.steps == 1)
      return fmt::format("A step{} {} {} (usually {})", whose, unfinished ? "has taken" : "took", Time(ns),
                         Time(usual_ns));
    return fmt::format("Steps{} took {} on average (usually {})", whose, Time(ns), Time(usual_ns));
  }
  if (!unfinished && slowdown < 1.005)
    return fmt::format("Steps{} were slow", whose);  // recovered on average
  return fmt::format("{}{} {} {:.{}f}×{}", unfinished ? "A step" : "Steps", whose,
                     unfinished ? "has taken" : "slowed", slowdown, slowdown < 1.1 ? 2 : 1,
                     unfinished ? " its usual time" : "");
}

void AddAccount(const Situation& situation, std::vector<model::Evidence>& evidence) {
  for (size_t i = 0; i < kStates; ++i) {
    const auto state = static_cast<State>(i);
    if (situation.before[state] <= 0 && situation.during[state] <= 0) continue;
    const model::MetricInfo& info = model::InfoOf(MetricOf(state));
    evidence.push_back(
        {.signal = std::string(info.name),
         .before = situation.before[state],
         .during = situation.during[state],
         .score = 0,
         .sentence = fmt::format("{}: {} per step ({} before)", info.label, Time(situation.during[state]),
                                 Time(situation.before[state]))});
  }
}

// "CPU contention (0.96): the step waited for a CPU 47 % of the time"
std::string TextOf(const Candidate& candidate) {
  return fmt::format("{} ({:.2f}): {}", candidate.title(), candidate.confidence, candidate.finding.sentence);
}

void AddCauses(std::span<const Candidate> causes, std::vector<model::Evidence>& evidence) {
  for (const Candidate& candidate : causes)
    evidence.push_back({.signal = fmt::format("cause.{}", candidate.cause->name),
                        .before = std::nullopt,
                        .during = candidate.share,
                        .score = std::log(candidate.confidence / (1 - candidate.confidence)),
                        .sentence = TextOf(candidate)});
}

// Adds the causes in other ranks that are behind this program's.
void AddRoots(std::span<const Candidate> causes, std::vector<model::Evidence>& evidence) {
  for (const Candidate& candidate : causes)
    if (candidate.finding.root.has_value())
      evidence.push_back({.signal = fmt::format("root.{}", NameOf(*candidate.finding.root)),
                          .before = std::nullopt,
                          .during = candidate.share,
                          .score = 0,
                          .sentence = candidate.finding.sentence});
}

void AddSignalEvidence(std::span<const Candidate> causes, std::vector<model::Evidence>& evidence) {
  if (causes.empty()) return;
  for (const SignalEvidence& witness : causes.front().finding.signal_evidence)
    evidence.push_back({.signal = std::string(model::InfoOf(witness.signal).name),
                        .before = witness.change.before,
                        .during = witness.change.during,
                        .score = witness.nats,
                        .sentence = witness.sentence});
}

// Whether there is a likely cause, and little of the lost time is unexplained.
bool IsExplained(const Situation& situation, std::span<const Candidate> causes) {
  if (causes.empty() || !(causes.front().confidence >= kWeights.ranking.min_confidence) ||
      causes.front().share < kWeights.ranking.min_named)
    return false;
  double unexplained =
      std::max(0.0, situation.excess(State::kUnexplained) + situation.excess(State::kWaiting));
  // A hang explains unexplained time: the threads do nothing.
  const std::span<const State> states = causes.front().cause->states;
  if (std::ranges::find(states, State::kUnexplained) != states.end()) unexplained = 0;
  return unexplained <= kWeights.ranking.max_unexplained * situation.lost_ns();
}

// Whether two causes explain the same time, so that one of them is right, and not both.
bool IsAlternative(const Candidate& first, const Candidate& other) {
  const auto within = [](std::span<const State> states, std::span<const State> all) {
    return std::ranges::all_of(states,
                               [&](State state) { return std::ranges::find(all, state) != all.end(); });
  };
  constexpr double kAll = 1.05;  // of the lost time; causes of different times explain less together
  return first.share + other.share > kAll && (within(other.cause->states, first.cause->states) ||
                                              within(first.cause->states, other.cause->states));
}

}  // namespace

Explanation Explain(const Situation& situation, std::span<const Candidate> causes, int64_t start_ns) {
  Explanation explanation;
  std::string why, advice;
  if (IsExplained(situation, causes)) {
    explanation.cause = causes.front().cause->id;
    explanation.confidence = causes.front().confidence;
    why = TextOf(causes.front());
    advice = fmt::format(" {}", causes.front().advice());
    for (const Candidate& also : causes.subspan(1)) {
      if (also.confidence < kWeights.ranking.min_confidence || IsAlternative(causes.front(), also)) continue;
      why += ". Also " + TextOf(also);
      advice += fmt::format(" {}", also.advice());
    }
  } else {
    explanation.confidence = causes.empty() ? 1 : 1 - causes.front().confidence;
    why = Abstain(situation);
    advice = NextStep(situation);
  }
  if (situation.before_is_later)
    why += fmt::format(". No time without it is known before; {}", model::kBeforeIsLater);
  explanation.sentence =
      fmt::format("{} from {}. {}.{}", HowSlow(situation), FormatUtcClock(start_ns), why, advice);
  AddAccount(situation, explanation.evidence);
  AddCauses(causes, explanation.evidence);
  AddRoots(causes, explanation.evidence);
  AddSignalEvidence(causes, explanation.evidence);
  return explanation;
}

}  // namespace gpusonde::diagnose
