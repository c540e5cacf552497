// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/launch_join.h"

#include <algorithm>

#include "base/time.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kMaxDistanceNs = 60 * kNanosPerSecond;

// The calls of a process, walked through beside its events: both come by correlation id and then by start.
class Calls {
 public:
  explicit Calls(const CallRuns& runs) : merged_(runs.runs()), next_(merged_.Next()) {}

  // The call of an event; null if none is known.
  const CallRecord* Find(uint32_t correlation, int64_t start_ns) {
    if (!found_ || best_.correlation != correlation) {
      found_ = false;
      while (next_ != nullptr && next_->correlation < correlation) next_ = merged_.Next();
    }
    while (next_ != nullptr && next_->correlation == correlation &&
           (!found_ || next_->start_ns <= start_ns)) {
      best_ = *next_;
      found_ = true;
      next_ = merged_.Next();
    }
    if (!found_) return nullptr;
    const int64_t distance_ns = start_ns - best_.start_ns;
    return distance_ns > kMaxDistanceNs || distance_ns < -kMaxDistanceNs ? nullptr : &best_;
  }

  const Status& status() const { return merged_.status(); }

 private:
  Merged<CallRecord, ByCorrelation, Renumbering> merged_;
  const CallRecord* next_;
  CallRecord best_;
  bool found_ = false;
};

}  // namespace

Result<Launches> JoinLaunches(const ProcessRecords& process) {
  Launches launches(std::make_shared<TemporaryFile>());
  Calls calls(process.calls);
  Extent* extent = nullptr;
  uint16_t extent_rank = 0;
  Merged<GpuRecord, ByCorrelation, Renumbering> events(process.gpu.runs());
  while (const GpuRecord* event = events.Next()) {
    if (extent == nullptr || extent_rank != event->rank) {
      extent_rank = event->rank;
      extent = &launches.extents[extent_rank];
    }
    extent->Cover(event->start_ns, event->end_ns);
    LaunchedRecord record{.gpu = *event};
    const CallRecord* const call =
        event->has_correlation ? calls.Find(event->correlation, event->start_ns) : nullptr;
    if (call != nullptr) {
      record.has_call = 1;
      record.call_start_ns = call->start_ns;
      record.call_end_ns = call->end_ns;
      launches.queue.Add({.time_ns = std::min(call->start_ns, event->start_ns), .rank = event->rank});
    }
    launches.events.Add(record);
  }
  TRY(events.status());
  TRY(calls.status());
  TRY(launches.events.Finish());
  TRY(launches.queue.Finish());
  return launches;
}

}  // namespace gpusonde::analyze
