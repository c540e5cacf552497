// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/time_range.h"
#include "diagnose/clean_steps.h"
#include "diagnose/detector_thresholds.h"
#include "diagnose/recent_steps.h"

namespace gpusonde::diagnose {

// A slow-down that has not ended as far as is known. Its methods look at its steps among the newest ones.
// Times are ns since the epoch.
struct OpenIncident {
  int64_t onset_ns = 0;    // start of the first slow step
  int64_t evident_ns = 0;  // end of the steps by which it was detected
  ComparedTime time;       // of the steps since the onset
  bool overruns = false;   // a step that hasn't ended began it
  std::optional<int64_t> worse_since_ns;
  // Consecutive steps of unknown types, and the start of the first.
  int unknown_steps = 0;
  int64_t unknown_since_ns = 0;

  // A step of a known type has followed.
  void Add(const RecentStep& step);
  // The step that overran has ended. Its whole length replaces what was counted of it, even if its type is
  // unknown: the incident's slow-down follows from it.
  void EndOverrun(const TimedStep& step, bool is_known);
  // A step of an unknown type has followed. Returns whether only such steps have come for long: the program
  // does something else.
  bool AddUnknown(const TimedStep& step);

  // What steps take over what is usual, beyond 1; at least what an incident needs.
  double Excess() const;
  // Whether a step is closer to the incident's mean than to what is usual.
  bool IsSlow(const RecentStep& step) const { return step.ratio > SlowRatio(); }
  // The end of its last slow step so far; INT64_MAX if none is retained.
  int64_t SlowUntil(const RecentSteps& recent) const;
  // The last time in which steps were as before, and which slow ones have followed. Nullopt if there is none.
  std::optional<TimeRange> LastPause(const RecentSteps& recent) const;
  // If it was small, and had no such part, the newest steps that are far slower. Else empty.
  RecentSteps::Range FindLarge(const RecentSteps& recent) const;
  // The start of the last second if it is much slower than the incident before: perhaps a new disturbance.
  std::optional<int64_t> WorseSince(const RecentSteps& recent) const;
  // Since when steps have been as before, if they have for long enough.
  std::optional<int64_t> RecoveredSince(const RecentSteps& recent, const Thresholds& thresholds) const;

 private:
  double SlowRatio() const { return 1 + Excess() / 2; }
};

}  // namespace gpusonde::diagnose
