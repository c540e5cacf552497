// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cause_id.h"
#include "diagnose/situation.h"
#include "diagnose/tuned.h"

namespace gpusonde::diagnose {

// How a cause expects a signal to change between the baseline and the incident.
struct Expectation {
  enum class Direction : uint8_t { kRises, kFalls, kStays };
  model::Metric signal;
  Direction direction;
  // The change that counts in full: in the unit of Situation::signals, or for kFalls relative to the value
  // before.
  const Tuned<double>* scale;
  // Evidence for the cause if the signal changed as expected, against it if not; none if not measured.
  const Tuned<double>* nats;
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
  double explained_ns = 0;      // part of the excess time per step
  double nats = 0;              // log odds against *unknown*, in addition to those of the explained share
  std::string sentence;         // a clause: "the launch thread waited for a CPU 41 % of the time; …"
  std::string_view title;       // instead of the cause's, where that says less; else empty
  std::string_view advice;      // the same
  std::optional<CauseId> root;  // the cause behind this one if that lies in another rank's process
  std::vector<SignalEvidence> signal_evidence;
};

// What else a situation looks like that a cause explains: that other cause is superseded.
struct Superseded {
  CauseId cause;
  // Returns the evidence against the other cause, nats; 0 if it isn't superseded.
  double (*nats)(const Situation& situation);
};

// Each cause is a file under causes/ and a line in cause_id.h.
struct Cause {
  CauseId id;
  std::string_view name;          // as stored: cpu_contention
  std::string_view title;         // at the beginning of a sentence: CPU contention
  std::string_view advice;        // a sentence: what to do about it, or where to look next
  std::span<const State> states;  // those whose excess it explains
  std::span<const Expectation> expectations;
  std::span<const Superseded> supersedes;
  // Names the actors and amounts; may lower the explained time. Returns nullopt if the cause is impossible.
  std::optional<Finding> (*evaluate)(const Situation& situation);
};

// Sorted by name.
std::span<const Cause* const> AllCauses();
// Returns nullopt for the name of no cause.
std::optional<CauseId> FindCause(std::string_view name);
std::string_view NameOf(CauseId cause);

// A cause with its evidence.
struct Candidate {
  const Cause* cause = nullptr;
  Finding finding;
  double share = 0;       // of the lost time
  double confidence = 0;  // in [0, 1]

  std::string_view title() const { return finding.title.empty() ? cause->title : finding.title; }
  std::string_view advice() const { return finding.advice.empty() ? cause->advice : finding.advice; }
};

// Returns the summed excess of the states, at least 0.
double ExcessOf(const Situation& situation, std::span<const State> states);

// A step that makes no progress for this long is a hang.
inline constexpr int64_t kHungNs = 5'000'000'000;

// Returns whether a step hasn't ended, and no GPU work has come for as long as a hang takes.
bool MakesNoProgress(const Situation& situation);

// Returns whether the time in which the steps were blocked in the kernel is for disks: without I/O wait or
// I/O pressure it may be a lock, a file server, or anything else.
bool IsBlockedByDisks(const Situation& situation);

// Returns whether a step takes longer because its program computes, or waits for processes of its own that
// do, while its GPUs are idle: what compilers do. False if the GPUs' utilization isn't known: a thread that
// waits for a kernel which never ends may run, too.
bool WorksWithoutGpu(const Situation& situation);

// Returns whether most of the time that the launch thread waits for processes of the program more than before
// is for other threads of its own process.
bool WaitsForOwnThreads(const Situation& situation);

// Returns the CPU time per step of what the launch thread waits for more than before: the other threads of
// its process, or the loaders. 0 before if there is neither.
struct HelperCpu {
  double before_ns = 0, during_ns = 0;
};
HelperCpu HelperCpuOf(const Situation& situation);

// Returns whether the launch thread and what it waits for, if there is any, all use more CPU time by a
// similar factor.
bool IsUniformlySlower(const Situation& situation);

// Returns the CPU time per step that the hypervisor took from the machine more than before, ns. It is
// counted as CPU time of the threads that were running.
double StolenNs(const Situation& situation);

// Returns whether the program reclaims memory, so that it reads evicted pages from disk again.
bool IsReclaimingMemory(const Situation& situation);

// Returns who uses the disks noticeably more than before, and by how many bytes per second: the process,
// the program's own or another's, with the largest rise. Nullopt if there is none. What gpusonde itself reads
// is left out: it reads programs anew when they have left the page cache, as the program does.
std::optional<std::pair<Actor, double>> DiskUser(const Situation& situation);

// Returns the rank that was late by the most time more than before; null if none was.
const RankPart* LastRank(const Situation& situation);

// What a rank did with most of the time by which it was late.
struct RankActivity {
  State state;
  std::optional<CauseId> cause;  // the cause that it suggests, if a single thread's time can tell
  std::string_view text;
};
// Returns the activity with at least half of the lost time; null if there is none.
const RankActivity* MainActivity(const RankPart& rank);

// Returns the evidence against a straggler, nats, if the last rank has an incident of its own with this
// cause, which is one of the network between the ranks.
double OverStraggler(CauseId network, const Situation& situation);

}  // namespace gpusonde::diagnose
