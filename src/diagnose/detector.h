// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/id128.h"

namespace gpusonde::diagnose {

// Says when the steps of one process have become slower than they were, and when that is over. Works on the
// logarithm of a step's time over the median of its type, by four tests of which each sees what the others
// don't:
//
// - two one-sided CUSUMs of winsorised deviations (Page 1954), for small shifts and for large ones;
// - a CUSUM of steps that are longer than almost every clean one, for programs with steps of several lengths,
//   whose deviations say little;
// - the mean time over a second against what the baseline says: a median doesn't move when one step in five
//   is throttled (+2 % in the median, +85 % in the mean, notes/host-signals.md); over five seconds likewise,
//   where few steps lose most of the time;
// - the overrun of the unfinished step.
//
// Their limits come from a circular block bootstrap of the process's own clean steps (Politis and Romano
// 1992), so that steps which vary by themselves and in clusters need more to be called slow; those of
// means from how much those of 1, 2, 4, … clean steps vary. While there is suspicion nothing is learnt.
// Deterministic: its random numbers begin with a fixed seed. Not thread-safe.
class Detector {
 public:
  struct Step {
    Id128 type;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };

  enum class Verdict : uint8_t {
    kLearning,  // no baseline yet
    kClean,
    kSuspect,  // slower than usual, not yet called slow
    kSlow,     // within an incident
    kClosed,   // the incident is over with this step, or so are steps of the kind that were slow
    kWorse,    // another one begins within it: the incident is over, and the next one open
  };

  Verdict Take(const Step& step);

  // The unfinished step that began at `start_ns` still runs at `now_ns`: kSlow from when it overruns.
  Verdict Overrun(int64_t start_ns, int64_t now_ns);

  // Of the incident that is open, or was closed by the last Take.
  int64_t onset_ns() const { return onset_ns_; }  // begin of the first slow step
  int64_t recovered_ns() const { return recovered_ns_; }
  // Of the open one: end of its last slow step so far; what comes after may be the recovery. INT64_MAX when
  // none is remembered.
  int64_t slow_until_ns() const;
  // Mean time of steps since the onset over what the baseline says of steps like these.
  double slowdown() const;

  bool open() const { return open_; }
  // Whether the baseline knows this type of step.
  bool Knows(const Id128& type) const;
  // What a step of this type usually takes; 0 when not known.
  double UsualNs(const Id128& type) const;

  static constexpr size_t kLearnSteps = 20;

 private:
  struct Type {
    struct Clean {
      int64_t end_ns;
      double log_ns;
    };
    std::deque<Clean> clean;  // the newest steps
    double median_log = 0;
    double mean_ns = 0;
    size_t since_summed_up = 0;

    void Add(int64_t end_ns, double log_ns);
  };
  struct Recent {
    int64_t start_ns, end_ns;
    double ratio;     // to the usual time of its type
    double usual_ns;  // mean of its type
    double z;
  };

  Verdict TakeOther(const Step& step);
  void Close();
  void Learn(const Step& step);
  void SetLimits();
  bool HasBaseline() const { return scale_ > 0; }
  bool Suspicious() const { return small_ > small_limit_ / 2 || large_ > large_limit_ / 2; }
  double SpreadOf(size_t steps) const;
  bool IsLarge(double slowdown, size_t steps) const;
  bool MeanIsHigh(int64_t window_ns) const;
  size_t LikeliestOnset(int64_t window_ns, double most_ratio) const;
  void Open(size_t onset);
  bool Recovered();
  bool IsWorse();
  double Excess() const;
  bool IsSlow(const Recent& step) const;
  double TailAddend(double ratio) const;
  double CleanShareAbove(double ratio) const;

  std::map<Id128, Type> types_;
  struct Learnt {
    Id128 type;
    double length_ns;
    double residual;  // log ratio to the median of its type, as that was then
  };
  std::deque<Learnt> learnt_;  // the newest clean steps
  std::deque<Step> held_;      // clean ones that are not learnt from yet
  int64_t learnt_ns_ = 0;      // in clean steps
  size_t learnt_since_limits_ = 0;
  int64_t seen_ = 0;
  std::vector<double> clean_ratios_;  // of clean steps to the mean of their type, sorted
  double scale_ = 0;
  double small_limit_ = 0, large_limit_ = 0, tail_limit_ = 0;
  double tail_ratio_ = 0;  // hardly a clean step is longer than this
  // Standard deviation of the mean ratio of 1, 2, 4, … clean steps that follow each other, and the highest of
  // all such means: a program that wanders over seconds varies by as much in its means as in its steps.
  std::vector<double> spreads_, highest_;

  double small_ = 0, large_ = 0, tail_ = 0;
  std::deque<Recent> recent_;

  bool open_ = false;
  int64_t onset_ns_ = 0, recovered_ns_ = 0;
  double slow_ns_ = 0, usual_ns_ = 0;  // of steps since the onset
  int others_ = 0;                     // since then, without one of a known type between them
  int64_t others_since_ns_ = 0;
};

}  // namespace gpusonde::diagnose
