// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/usual_length.h"

namespace gpusonde::diagnose {

// Detects when the steps of one process become slow, and when they recover. The input is the logarithm of a
// step's time over the median of its type and size (usual_length.h). Five tests complement each other:
//
// - two one-sided CUSUMs of winsorised deviations (Page 1954), for small and for large shifts;
// - a CUSUM of the steps that are longer than almost every clean one, for programs whose steps have several
//   lengths, so that deviations from the median say little;
// - the mean step time over a second against the baseline: the median doesn't move when one step in five is
//   throttled (+2 % in the median, +85 % in the mean). The same over five seconds, for slow-downs where few
//   steps lose most of the time;
// - the number of single steps in a second that each lose much, against a Poisson distribution with the
//   rate of clean steps: a GPU that stalls twice a second;
// - the overrun of the unfinished step.
//
// The thresholds of the CUSUMs come from a circular block bootstrap of the process's own clean steps (Politis
// and Romano 1992): steps that vary in clusters need a larger shift to be called slow. The thresholds of the
// means come from the variation of the means of 1, 2, 4, … clean steps. Steps under suspicion join the
// baseline when it passes, and never if an incident follows. Deterministic: the random generator has a fixed
// seed. Not thread-safe.
class Detector {
 public:
  struct Step {
    Id128 type;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t work = 0;  // kernels and copies
  };

  enum class Verdict : uint8_t {
    kLearning,  // warm-up, or no baseline yet
    kClean,
    kSuspect,  // slower than the baseline, but no incident yet
    kSlow,     // within an incident
    kClosed,   // this step ends the incident: steps have recovered, or steps of its kind no longer come
    kWorse,    // within an incident, and steps are much slower than in it before: perhaps another one
  };

  Verdict Ingest(const Step& step);

  // The open incident ended at `recovered_ns`; steps since `since_ns` belong to another one, which is open
  // from now on. Of the newest steps only: those before are forgotten.
  void Split(int64_t recovered_ns, int64_t since_ns);

  // Steps that ended before weren't clean: forgets them. Not while an incident is open.
  void ForgetBefore(int64_t time_ns);

  // The unfinished step that began at `start_ns` still runs at `now_ns`. Returns kSlow once it overruns.
  Verdict Overrun(int64_t start_ns, int64_t now_ns);

  // These describe the open incident, or the one that the last Ingest closed.
  int64_t onset_ns() const { return onset_ns_; }  // start of the first slow step
  int64_t recovered_ns() const { return recovered_ns_; }
  // After kWorse: start of the first much slower step.
  int64_t worse_since_ns() const { return worse_since_ns_; }
  // Of the open incident: the end of its last slow step so far; later steps may belong to the recovery.
  // INT64_MAX if no slow step is retained.
  int64_t slow_until_ns() const;
  // The last time within the open incident in which steps were as before, and which slow ones have followed.
  // Nullopt if there is none among the newest steps.
  std::optional<TimeRange> LastPause() const;
  // Mean time of the steps since the onset over the baseline's mean for the same step types.
  double slowdown() const;

  bool open() const { return open_; }
  // Whether the baseline has enough steps of this type.
  bool Knows(const Id128& type) const;

 private:
  struct Recent {
    int64_t start_ns, end_ns;
    double ratio;     // to its usual time
    double usual_ns;  // mean time of its type and size
    double z;
    // Of this step and those before it: the time that they took, and their usual time.
    double ns_so_far, usual_ns_so_far;
  };

  void CountOverrun(const Step& step);
  Verdict IngestUnknownType(const Step& step);
  void Close();
  void Learn(const Step& step);
  void ForgetSlowStart();
  void UpdateThresholds();
  bool HasBaseline() const { return scale_ > 0; }
  bool Suspicious() const { return small_ > small_threshold_ / 2 || large_ > large_threshold_ / 2; }
  double SpreadOf(size_t steps) const;
  bool IsLarge(double slowdown, size_t steps) const;
  bool MeanIsHigh(int64_t window_ns) const;
  bool IsOutlier(const Recent& step) const;
  void CountClean();
  void UncountSince(size_t onset);
  bool OutliersAreMore(int64_t window_ns) const;
  size_t LikeliestOnset(int64_t window_ns, double max_ratio) const;
  void Open(size_t onset);
  bool Recovered();
  std::optional<int64_t> WorseSince() const;
  double Excess() const;
  bool IsSlow(const Recent& step) const;
  double TailAddend(double ratio) const;
  double CleanShareAbove(double ratio) const;

  std::map<Id128, UsualLength> types_;
  struct BaselineStep {
    Id128 type;
    int64_t end_ns;
    double length_ns;
    int64_t work;
    double residual;  // log ratio to the median of its type and size at that time
    bool warm_up;     // of the program's first seconds
  };
  std::deque<BaselineStep> baseline_;  // the newest clean steps, of all types
  std::deque<Step> held_;              // the newest clean steps, not yet part of the baseline
  int64_t baseline_ns_ = 0;            // total time of the steps in the baseline so far
  size_t new_in_baseline_ = 0;
  int64_t seen_ = 0;
  std::vector<double> clean_ratios_;  // clean step times over the mean of their type and size, sorted
  double scale_ = 0;
  double small_threshold_ = 0, large_threshold_ = 0, tail_threshold_ = 0;
  double tail_ratio_ = 0;  // hardly any clean step is longer than this
  // Standard deviation of the mean ratio of 1, 2, 4, … consecutive clean steps, and the highest of all such
  // means. In a program that drifts over seconds, means vary as much as single steps do.
  std::vector<double> spreads_, highest_;

  double clean_outliers_ = 0;  // among clean steps of counted_ns_
  double counted_ns_ = 0;

  double small_ = 0, large_ = 0, tail_ = 0;
  std::deque<Recent> recent_;

  bool open_ = false;
  bool overruns_ = false;  // a step that hasn't ended began the incident
  int64_t onset_ns_ = 0, recovered_ns_ = 0;
  int64_t evident_ns_ = 0;             // end of the steps by which it was detected
  int64_t worse_since_ns_ = 0;         // 0: it isn't
  double slow_ns_ = 0, usual_ns_ = 0;  // of the steps since the onset
  int unknown_steps_ = 0;              // consecutive steps of unknown types since then
  int64_t unknown_since_ns_ = 0;
};

}  // namespace gpusonde::diagnose
