// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/thread_time.h"

namespace gpusonde::diagnose {

// What a thread did, by time bucket. Consecutive buckets of which the same is known are stored once: a thread
// that sleeps has a hundred of them in a second, and a program may have hundreds of such threads. Times are
// ns since the epoch, and within 2^62 of it. Not thread-safe.
class BucketRuns {
 public:
  // Adds this time in a state to each of `count` consecutive buckets of this length, the first of which
  // begins at `start_ns`. A bucket that is known already gets the length, too.
  void Add(int64_t start_ns, int64_t length_ns, int64_t count, ThreadState state, double ns,
           const Id128& other);

  // Calls visit(time by state of a whole bucket, time range of the bucket, its part in the range) for each
  // bucket that overlaps the range, in the order of their starts.
  template <class Visit>
  void ForEach(const TimeRange& range, Visit visit) const;

  // The time in a state of all buckets that begin in the range, ns.
  double SumOf(ThreadState state, const TimeRange& begins) const;

  bool empty() const { return runs_.empty(); }
  // When the first and the last bucket begin. Require one.
  int64_t first_ns() const { return runs_.begin()->first; }
  int64_t last_ns() const {
    const auto& [first_ns, run] = *runs_.rbegin();
    return first_ns + (run.count - 1) * run.length_ns;
  }

  // Drops the buckets that begin before this time.
  void ForgetBefore(int64_t time_ns);

  // How many runs of equal buckets are stored; about 300 bytes each.
  size_t runs() const { return runs_.size(); }

 private:
  struct Run {
    int64_t length_ns = 0;  // of each bucket
    int64_t count = 0;      // of buckets
    ThreadTime time;        // of each bucket
  };
  // By the start of the first bucket. All buckets of a run begin before the next run.
  using Runs = std::map<int64_t, Run>;

  // How many buckets of a run begin before this time.
  static int64_t CountBefore(const Runs::value_type& at, int64_t time_ns);
  // Makes the buckets from this one on a run of their own, and returns it.
  Runs::iterator Split(Runs::iterator at, int64_t bucket);

  Runs runs_;
};

template <class Visit>
void BucketRuns::ForEach(const TimeRange& range, Visit visit) const {
  auto at = runs_.upper_bound(range.from_ns);
  if (at != runs_.begin()) --at;
  for (; at != runs_.end() && at->first < range.to_ns; ++at) {
    const auto& [first_ns, run] = *at;
    // Of those that begin before the range only the last one may overlap it.
    const int64_t skipped = std::max<int64_t>(CountBefore(*at, range.from_ns) - 1, 0);
    TimeRange bucket{.from_ns = first_ns + skipped * run.length_ns, .to_ns = 0};
    for (int64_t i = skipped; i < run.count && bucket.from_ns < range.to_ns; ++i) {
      bucket.to_ns = bucket.from_ns + run.length_ns;
      const TimeRange part{std::max(bucket.from_ns, range.from_ns), std::min(bucket.to_ns, range.to_ns)};
      if (part.from_ns < part.to_ns) visit(run.time, bucket, part);
      bucket.from_ns = bucket.to_ns;
    }
  }
}

}  // namespace gpusonde::diagnose
