// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/launch_join.h"

#include "base/time.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kMaxDistanceNs = 60 * kNanosPerSecond;

}  // namespace

LaunchJoin::LaunchJoin(const ProcessRecords& process, int64_t gpu_ahead_ns)
    : events_(process.gpu.runs()),
      calls_(process.calls.runs()),
      gpu_ahead_ns_(gpu_ahead_ns),
      next_call_(calls_.Next()) {}

const CallRecord* LaunchJoin::FindCall(uint32_t correlation, int64_t start_ns) {
  if (!found_ || best_.correlation != correlation) {
    found_ = false;
    while (next_call_ != nullptr && next_call_->correlation < correlation) next_call_ = calls_.Next();
  }
  while (next_call_ != nullptr && next_call_->correlation == correlation &&
         (!found_ || next_call_->start_ns <= start_ns)) {
    if (found_ && next_call_->thread != best_.thread &&
        next_call_->start_ns - best_.start_ns < kMaxDistanceNs)
      ++shared_numbers_;
    best_ = *next_call_;
    found_ = true;
    next_call_ = calls_.Next();
  }
  if (!found_) return nullptr;
  const int64_t distance_ns = start_ns - best_.start_ns;
  return distance_ns > kMaxDistanceNs || distance_ns < -kMaxDistanceNs ? nullptr : &best_;
}

bool LaunchJoin::Next(LaunchedRecord& record) {
  const GpuRecord* const event = events_.Next();
  if (event == nullptr) return false;
  record.gpu = *event;
  const CallRecord* const call =
      event->has_correlation != 0 ? FindCall(event->correlation, event->start_ns - gpu_ahead_ns_) : nullptr;
  record.has_call = call != nullptr ? 1 : 0;
  record.thread = call != nullptr ? call->thread : 0;
  record.call_start_ns = call != nullptr ? call->start_ns + gpu_ahead_ns_ : 0;
  record.call_end_ns = call != nullptr ? call->end_ns + gpu_ahead_ns_ : 0;
  return true;
}

Status LaunchJoin::status() const {
  TRY(events_.status());
  return calls_.status();
}

}  // namespace gpusonde::analyze
