// SPDX-License-Identifier: Apache-2.0
#include "server/revision_pacer.h"

#include <time.h>

#include <algorithm>

namespace gpusonde::server {
namespace {

// 1.5 % of a core: with its 304s and the sampling of its browser, a page stays below 2 %.
constexpr int64_t kRestPerCost = 66;
// The agent sends rows to the store once a second.
constexpr int64_t kMinIntervalNs = kNanosPerSecond;
// One page that shows weeks must not stop updates of all others.
constexpr int64_t kMaxIntervalNs = 300 * kNanosPerSecond;
// Pages poll more often than that.
constexpr int64_t kPauseNs = 10 * kNanosPerSecond;

}  // namespace

int64_t ProcessCpuNow() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * kNanosPerSecond + time.tv_nsec;
}

uint64_t RevisionPacer::Revision(const std::function<uint64_t()>& newest) {
  const std::scoped_lock lock(mutex_);
  CountCost();
  const int64_t now_ns = now_ns_();
  const bool is_first = !asked_ns_.has_value();
  if (is_first || now_ns - *asked_ns_ > kPauseNs) asked_since_ns_ = now_ns;
  asked_ns_ = now_ns;
  const int64_t max_interval_ns = std::clamp(renewed_ns_ - asked_since_ns_, kMinIntervalNs, kMaxIntervalNs);
  const int64_t interval_ns =
      std::clamp(cost_ns_, kMinIntervalNs / kRestPerCost, max_interval_ns / kRestPerCost) * kRestPerCost;
  if (!is_first && now_ns - renewed_ns_ < interval_ns) return revision_;
  // Committing what the store holds is part of the next revision's cost.
  const int64_t cpu_ns = cpu_ns_();
  revision_ = newest();
  renewed_ns_ = now_ns;
  cost_ns_ = cpu_ns_() - cpu_ns;
  counted_to_ns_ = cpu_ns_();
  return revision_;
}

void RevisionPacer::Begin() {
  const std::scoped_lock lock(mutex_);
  if (answering_++ == 0) counted_to_ns_ = cpu_ns_();
}

void RevisionPacer::End() {
  const std::scoped_lock lock(mutex_);
  CountCost();
  --answering_;
}

void RevisionPacer::CountCost() {
  if (answering_ == 0) return;
  const int64_t cpu_ns = cpu_ns_();
  cost_ns_ += cpu_ns - counted_to_ns_;
  counted_to_ns_ = cpu_ns;
}

}  // namespace gpusonde::server
