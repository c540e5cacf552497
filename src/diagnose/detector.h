// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/clean_steps.h"
#include "diagnose/detector_thresholds.h"
#include "diagnose/open_incident.h"
#include "diagnose/outlier_rate.h"
#include "diagnose/recent_steps.h"

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
//   rate of clean steps: a GPU that stalls twice a second. One is enough if the driver reports an error of
//   the GPU meanwhile;
// - the overrun of the unfinished step.
//
// Steps under suspicion join the baseline when it passes, and never if an incident follows. Deterministic.
// Not thread-safe.
class Detector {
 public:
  enum class Verdict : uint8_t {
    kLearning,  // warm-up, or no baseline yet
    kClean,
    kSuspect,    // slower than the baseline, but no incident yet
    kSlow,       // within an incident
    kClosed,     // this step ends the incident: steps have recovered, or steps of its kind no longer come
    kWorse,      // within an incident, and steps are much slower than in it before: perhaps another one
    kLarge,      // the same, of an incident that was small, and no longer is: another one
    kLateOnset,  // the same, of one that began just before: what seemed slow then may have been so by chance
  };

  Verdict Ingest(const TimedStep& step);

  // The open incident ended at `recovered_ns`; steps since `since_ns` belong to another one, which is open
  // from now on. Of the newest steps only: those before are forgotten.
  void Split(int64_t recovered_ns, int64_t since_ns);
  // The open incident began at `since_ns`, later than it seemed.
  void MoveOnset(int64_t since_ns);
  // As Split(), of the unfinished step, which began at `since_ns`.
  void SplitOverrun(int64_t since_ns, int64_t now_ns);

  // Steps that ended before weren't clean: forgets them. Not while an incident is open.
  void ForgetBefore(int64_t time_ns);

  // The unfinished step that began at `start_ns` still runs at `now_ns`. Returns kSlow once it overruns.
  Verdict Overrun(int64_t start_ns, int64_t now_ns);
  // Whether that step takes far longer than any clean one, also within an incident.
  bool Overruns(int64_t start_ns, int64_t now_ns) const;

  bool open() const { return open_.has_value(); }
  // Of the open incident, else of the last one: the start of its first slow step, and the mean time of its
  // steps over the baseline's mean for the same step types.
  int64_t onset_ns() const { return open() ? open_->onset_ns : closed_.onset_ns; }
  double slowdown() const { return open() ? open_->time.slowdown() : closed_.slowdown; }
  // The end of the last incident.
  int64_t recovered_ns() const { return closed_.recovered_ns; }
  // After kWorse, kLarge and kLateOnset: start of the first much slower step.
  int64_t worse_since_ns() const { return open() ? open_->worse_since_ns.value_or(0) : 0; }
  // Of the open incident: the end of its last slow step so far; later steps may belong to the recovery.
  // INT64_MAX if no slow step is retained.
  int64_t slow_until_ns() const { return open() ? open_->SlowUntil(recent_) : INT64_MAX; }
  // The last time within the open incident in which steps were as before, and which slow ones have followed.
  // Nullopt if there is none among the newest steps.
  std::optional<TimeRange> LastPause() const { return open() ? open_->LastPause(recent_) : std::nullopt; }

  // Whether the baseline has enough steps of this type.
  bool Knows(const Id128& type) const { return clean_.Knows(type); }

 private:
  struct ClosedIncident {
    int64_t onset_ns = 0, recovered_ns = 0;
    double slowdown = 1;
  };

  Verdict IngestUnknown(const TimedStep& step);
  Verdict JudgeIncident();
  Verdict JudgeClean(const TimedStep& step);
  void Learn(const TimedStep& step);
  void UpdateThresholds();
  bool IsLarge(double slowdown, size_t steps) const;
  bool MeanIsHigh(int64_t window_ns) const;
  bool IsOutlier(const RecentStep& step) const;
  bool OutliersAreMore(int64_t window_ns) const;
  RecentSteps::Range FindSlow(bool mean_is_high) const;
  RecentSteps::Range FindSlowWithin(int64_t window_ns, double max_ratio) const;
  bool AreSlow(const RecentSteps::Range& steps) const;
  void Open(const RecentSteps::Range& slow);
  void OpenOverrun(int64_t start_ns, int64_t now_ns);
  void RecordEnd(int64_t recovered_ns);
  void Close(int64_t recovered_ns);

  int64_t ingested_ = 0;
  CleanSteps clean_;
  std::optional<Thresholds> thresholds_;  // nullopt until enough clean steps are known
  OutlierRate outliers_;
  RecentSteps recent_;
  Cusums cusums_;  // since the last incident
  std::optional<OpenIncident> open_;
  ClosedIncident closed_;
};

}  // namespace gpusonde::diagnose
