// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/sync_times.h"

#include <algorithm>
#include <utility>

namespace gpusonde::analyze {

SyncFollower::SyncFollower(std::span<const Run<SyncRecord, Renumbering>> runs, const SyncNames& names,
                           const ClockWithout& clock, const Steps& steps, int64_t gpu_ahead_ns)
    : calls_(runs), names_(names), clock_(clock), steps_(steps), gpu_ahead_ns_(gpu_ahead_ns) {
  result_.steps.resize(steps.ranges.size());
  ReadNext();
  next_ns_ = next_.start_ns;
}

void SyncFollower::ReadNext() {
  const SyncRecord* call = calls_.Next();
  // Which calls are found of a name that was dropped depends on how the trace was divided, so none counts.
  while (call != nullptr && !names_.canonical.empty() && names_.canonical[call->name] != call->name)
    call = calls_.Next();
  if (call == nullptr) {
    next_.start_ns = kNever;
    return;
  }
  next_ = {.start_ns = clock_.Without(call->start_ns + gpu_ahead_ns_),
           .end_ns = clock_.Without(call->end_ns + gpu_ahead_ns_),
           .name = call->name,
           .thread = call->thread};
}

size_t SyncFollower::StepOf(int64_t time_ns) {
  const std::vector<TimeRange>& ranges = steps_.ranges;
  const int64_t host_ns = time_ns - gpu_ahead_ns_;
  while (next_step_ < ranges.size() && ranges[next_step_].from_ns <= host_ns) ++next_step_;
  if (next_step_ == 0 || host_ns >= ranges.back().to_ns) return ranges.size();
  return next_step_ - 1;
}

void SyncFollower::Open(const RankTimeline& before) {
  next_.step = StepOf(next_.start_ns);
  const auto outer = std::ranges::find(open_, next_.thread, &Call::thread);
  if (outer != open_.end()) {
    // A call within another of its thread, such as the driver's in the runtime's, waits for the same. Of
    // calls with the same times it isn't known which is within the other.
    const bool same = outer->start_ns == next_.start_ns && outer->end_ns == next_.end_ns;
    if (same && names_.hashes[next_.name] < names_.hashes[outer->name]) outer->name = next_.name;
  } else if (open_.size() == kMaxOpen) {
    ++result_.beyond_bound;
  } else {
    next_.busy_before_ns = before.busy_until_ns(next_.start_ns);
    open_.push_back(next_);
    first_end_ns_ = std::min(first_end_ns_, next_.end_ns);
  }
  ReadNext();
}

void SyncFollower::Close(size_t index, const RankTimeline& before) {
  const Call call = open_[index];
  open_[index] = open_.back();
  open_.pop_back();
  const SyncSum sum{.count = 1,
                    .total_ns = call.end_ns - call.start_ns,
                    .busy_ns = before.busy_until_ns(call.end_ns) - call.busy_before_ns};
  bool is_new = false;
  SyncRow& row = rows_.At(MixBits(names_.hashes[call.name] + MixBits(call.thread + 1)), is_new);
  if (is_new) row = {.name = call.name, .thread = call.thread, .sum = {}};
  row.sum.Merge(sum);
  if (call.step < result_.steps.size()) result_.steps[call.step].Merge(sum);
}

void SyncFollower::AdvanceTo(int64_t time_ns, const RankTimeline& before) {
  for (; next_ns_ <= time_ns && next_ns_ != kNever; next_ns_ = std::min(next_.start_ns, first_end_ns_)) {
    if (next_.start_ns < first_end_ns_) {
      Open(before);
      continue;
    }
    const auto first = std::ranges::find(open_, first_end_ns_, &Call::end_ns);
    Close(static_cast<size_t>(first - open_.begin()), before);
    first_end_ns_ = open_.empty() ? kNever : std::ranges::min_element(open_, {}, &Call::end_ns)->end_ns;
  }
}

Result<RankSyncs> SyncFollower::Finish(const RankTimeline& timeline) && {
  AdvanceTo(kNever, timeline);
  TRY(calls_.status());
  rows_.Finish();
  for (const auto& [hash, row] : rows_.entries()) result_.rows.push_back(row);
  result_.others = rows_.other().sum;
  return std::move(result_);
}

}  // namespace gpusonde::analyze
