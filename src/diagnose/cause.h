// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/situation.h"

namespace gpusonde::diagnose {

// How a cause expects a signal to change between the baseline and the incident.
struct Expectation {
  enum class Direction : uint8_t { kRises, kFalls, kStays };
  model::Metric signal;
  Direction direction;
  // The change that counts in full: in the unit of Situation::signals, or for kFalls relative to the value
  // before.
  double scale;
  // Evidence for the cause if the signal changed as expected, against it if not; none if not measured.
  double nats;
  std::string_view why;  // a phrase for the report, used if the signal changed as expected
};

struct SignalEvidence {
  model::Metric signal;
  Change change;
  double nats = 0;
  std::string sentence;
};

// How well a cause explains a situation.
struct Finding {
  double explained_ns = 0;  // part of the excess time per step
  double nats = 0;          // log odds against *unknown*, in addition to those of the explained share
  std::string sentence;     // a clause: "the launch thread waited for a CPU 41 % of the time; …"
  std::string root;         // name of the cause behind this one if that lies in another rank's process
  std::vector<SignalEvidence> signal_evidence;
};

// Each cause is a file under causes/ and a line in causes.cpp.
struct Cause {
  std::string_view name;          // as stored: cpu_contention
  std::string_view title;         // at the beginning of a sentence: CPU contention
  std::span<const State> states;  // those whose excess it explains
  std::span<const Expectation> expectations;
  // Names the actors and amounts; may lower the explained time. Returns nullopt if the cause is impossible.
  std::optional<Finding> (*evaluate)(const Situation& situation);
};

// Sorted by name.
std::span<const Cause* const> AllCauses();

// A cause with its evidence.
struct Candidate {
  const Cause* cause = nullptr;
  Finding finding;
  double share = 0;       // of the excess time
  double confidence = 0;  // in [0, 1]
};

// Returns all causes that return a Finding, the most likely one first.
std::vector<Candidate> Rank(const Situation& situation);

// Returns the summed excess of the states, at least 0.
double ExcessOf(const Situation& situation, std::span<const State> states);

// A step that makes no progress for this long is a hang.
inline constexpr int64_t kHungNs = 5'000'000'000;

// Returns whether the launch thread and the loaders, if there are any, all use more CPU time by a similar
// factor.
bool IsUniformlySlower(const Situation& situation);

// Returns whether the program reclaims memory, so that it reads evicted pages from disk again.
bool IsReclaimingMemory(const Situation& situation);

// Returns the actor as text for sentences: "38 ms of each step were taken by stress-ng in /batch.slice".
std::string NameActor(const Actor& actor);
// Returns the actors whose share rose and by how much, the largest rise first: either those of the workload
// (`own`) or the others.
std::vector<std::pair<Actor, double>> LargestRises(const Shares& before, const Shares& during, bool own);

}  // namespace gpusonde::diagnose
