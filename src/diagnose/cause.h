// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/situation.h"

namespace gpusonde::diagnose {

// What a cause's model expects of a signal.
struct Case {
  enum class Expect : uint8_t { kRises, kFalls, kStays };
  model::Metric signal;
  Expect expect;
  // A change that counts as one: in the unit of Situation::signals, or for kFalls as a share of what was
  // before.
  double scale;
  double nats;  // for the cause where it is as expected, against it where it isn't, nothing where unmeasured
  std::string_view why;  // a phrase for a person, where it is as expected
};

struct Witness {
  model::Metric signal;
  Change change;
  double nats = 0;
  std::string sentence;
};

// What a cause has to say of a situation.
struct Finding {
  double explained_ns = 0;  // of a step's excess
  double nats = 0;          // log likelihood against *unknown*, beside what the share of the excess says
  std::string sentence;     // a clause: "the feeding thread waited 41 % of the time for a CPU; …"
  std::string root;         // a cause by name, where this one is but what comes of another program's
  std::vector<Witness> witnesses;
};

// A cause is a file under causes/ and a line in causes.cpp.
struct Cause {
  std::string_view name;          // as stored: cpu_contention
  std::string_view title;         // as a sentence begins with it: CPU contention
  std::span<const State> states;  // whose excess it explains
  std::span<const Case> cases;
  // Says who and how much; may lower what it explains, and give nothing when it can't be.
  std::optional<Finding> (*look)(const Situation& situation);
};

// By name.
std::span<const Cause* const> AllCauses();

// A cause with what speaks for it.
struct Candidate {
  const Cause* cause = nullptr;
  Finding finding;
  double share = 0;       // of the excess
  double confidence = 0;  // in [0, 1]
};

// All causes that have something to say, the most likely one first.
std::vector<Candidate> Rank(const Situation& situation);

// Sums the excess of the cause's states that is above nought.
double ExcessOf(const Situation& situation, std::span<const State> states);

// A step in which nobody does anything for so long hangs.
inline constexpr int64_t kHungNs = 5'000'000'000;

// Whether all that runs for a step runs longer, and about as much: the feeding thread, and its loaders where
// it has any.
bool SlowerAllOver(const Situation& situation);

// Whether it has to give back memory, and so reads again what it had in there.
bool ReadsAgain(const Situation& situation);

// For sentences: "38 ms of each step were taken by stress-ng in /batch.slice".
std::string NameParty(const Party& party);
// Whose time or bytes rose, by how much, most first. Of others, or of the program's own.
std::vector<std::pair<Party, double>> WhoRose(const Shares& before, const Shares& during, bool own);

}  // namespace gpusonde::diagnose
