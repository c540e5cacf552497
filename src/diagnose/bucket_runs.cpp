// SPDX-License-Identifier: Apache-2.0
#include "diagnose/bucket_runs.h"

#include <utility>

namespace gpusonde::diagnose {

void BucketRuns::Add(int64_t start_ns, int64_t length_ns, int64_t count, ThreadState state, double ns,
                     const Id128& other) {
  while (count > 0) {
    auto at = runs_.upper_bound(start_ns);
    int64_t added = 1;
    if (at != runs_.begin()) --at;
    const int64_t before = at == runs_.end() ? 0 : CountBefore(*at, start_ns);
    if (at != runs_.end() && before < at->second.count &&
        at->first + before * at->second.length_ns == start_ns) {
      if (before > 0) at = Split(at, before);
      if (at->second.length_ns == length_ns) added = std::min(at->second.count, count);
      if (added < at->second.count) Split(at, added);
    } else {
      // Between buckets that begin at other times, as after a step of the clock.
      if (before > 0 && before < at->second.count) Split(at, before);
      const auto next = runs_.upper_bound(start_ns);
      added = next == runs_.end() ? count : std::min((next->first - start_ns - 1) / length_ns + 1, count);
      at = runs_.emplace_hint(next, start_ns, Run{.length_ns = 0, .count = added, .time = {}});
    }
    at->second.length_ns = length_ns;
    at->second.time.Add(state, ns, other);
    start_ns += added * length_ns;
    count -= added;
  }
}

double BucketRuns::SumOf(ThreadState state, const TimeRange& begins) const {
  double ns = 0;
  auto at = runs_.upper_bound(begins.from_ns);
  if (at != runs_.begin()) --at;
  for (; at != runs_.end() && at->first < begins.to_ns; ++at)
    ns += at->second.time[state] *
          static_cast<double>(CountBefore(*at, begins.to_ns) - CountBefore(*at, begins.from_ns));
  return ns;
}

void BucketRuns::ForgetBefore(int64_t time_ns) {
  while (!runs_.empty() && runs_.begin()->first < time_ns) {
    const int64_t before = CountBefore(*runs_.begin(), time_ns);
    if (before < runs_.begin()->second.count) Split(runs_.begin(), before);
    runs_.erase(runs_.begin());
  }
}

int64_t BucketRuns::CountBefore(const Runs::value_type& at, int64_t time_ns) {
  const auto& [first_ns, run] = at;
  if (time_ns <= first_ns) return 0;
  // Unsigned, as the time may be any.
  const uint64_t passed_ns = static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(first_ns);
  const uint64_t count = (passed_ns - 1) / static_cast<uint64_t>(run.length_ns) + 1;
  return static_cast<int64_t>(std::min(count, static_cast<uint64_t>(run.count)));
}

BucketRuns::Runs::iterator BucketRuns::Split(Runs::iterator at, int64_t bucket) {
  Run& run = at->second;
  Run rest = run;
  rest.count -= bucket;
  run.count = bucket;
  return runs_.emplace_hint(std::next(at), at->first + bucket * run.length_ns, std::move(rest));
}

}  // namespace gpusonde::diagnose
