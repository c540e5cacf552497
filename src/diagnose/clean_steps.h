// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "base/id128.h"
#include "diagnose/detector_table.h"
#include "diagnose/usual_length.h"

namespace gpusonde::diagnose {

// A step as the detector sees it. Times are ns since the epoch.
struct TimedStep {
  Id128 type;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t work = 0;        // kernels and copies
  bool gpu_error = false;  // the driver reported one of its GPU meanwhile

  double length_ns() const { return static_cast<double>(end_ns - start_ns); }
};

// The clean steps of a program: how long steps of each type usually take, and the newest steps of all types,
// from which the thresholds are computed. A clean step is held back before it is learnt, as it may precede an
// onset. Not thread-safe.
class CleanSteps {
 public:
  // A step of a known type that was learnt.
  struct Learnt {
    Id128 type;
    int64_t end_ns = 0;
    double length_ns = 0;
    int64_t work = 0;
    double log_ratio = 0;  // to the median of its type and size at that time
    bool warm_up = false;  // of the program's first seconds
  };

  void Hold(const TimedStep& clean);
  // Removes the oldest step that has been held back for long enough; nullopt if there is none.
  std::optional<TimedStep> Release();
  // An incident follows: steps that are held back may belong to it.
  void DropHeld() { held_.clear(); }

  void Learn(const TimedStep& clean);
  // Steps that ended before weren't clean after all.
  void ForgetBefore(int64_t time_ns);
  // The first seconds of a program are often slower, and would hide a slow-down of their size. Forgets them
  // among the newest steps once there are enough others.
  void ForgetSlowStart();

  // Whether enough steps of this type were learnt.
  bool Knows(const Id128& type) const;
  // Requires that a step of this type was learnt.
  const UsualLength& UsualOf(const Id128& type) const { return types_.at(type); }
  // The longest mean of all known types, ns; 0 if there are none.
  double LongestMeanNs() const;

  const std::deque<Learnt>& newest() const { return newest_; }
  // The ratio of a step's length to the mean of its type and size.
  double RatioOf(const Learnt& step) const { return step.length_ns / types_.at(step.type).MeanNs(step.work); }
  // The number of steps of known types that were ever learnt.
  size_t learnt() const { return learnt_; }
  // Whether the steps that were learnt cover the program's first seconds only.
  bool is_warm_up() const { return learnt_ns_ < kDetector.min.warm_up_ns; }

 private:
  std::map<Id128, UsualLength> types_;
  std::deque<Learnt> newest_;
  std::deque<TimedStep> held_;
  size_t learnt_ = 0;
  int64_t learnt_ns_ = 0;  // total time of the steps that were ever learnt
};

}  // namespace gpusonde::diagnose
