// SPDX-License-Identifier: Apache-2.0
#include "diagnose/launch_thread.h"

#include <algorithm>
#include <cstddef>

namespace gpusonde::diagnose {
namespace {

// When older calls count half, and how many more another thread must have.
constexpr int64_t kHalvedAfter = 20'000;
constexpr int64_t kMorePercent = 25;

// Of another thread, in a step without calls of the usual one: that one's may not have been sampled.
constexpr int64_t kMinCalls = 3;
constexpr size_t kMaxNewest = 20'000;  // calls

constexpr auto kCount = [](const auto& thread) { return thread.second; };

}  // namespace

void LaunchThread::Ingest(int32_t tid, int64_t time_ns) {
  ++counts_[tid];
  if (counts_.size() > 1) newest_.emplace(time_ns, tid);
  if (newest_.size() > kMaxNewest) newest_.erase(newest_.begin());
  if (++counted_ < kHalvedAfter) return;
  // A thread that launched for days may have ended; servers may have a thread for each request.
  counted_ = 0;
  for (auto& [thread, count] : counts_) count /= 2;
  std::erase_if(counts_, [](const auto& thread) { return thread.second == 0; });
}

void LaunchThread::Forget(int32_t tid) {
  counts_.erase(tid);
  std::erase_if(newest_, [tid](const auto& call) { return call.second == tid; });
}

std::optional<int32_t> LaunchThread::Usual() {
  const auto most = std::ranges::max_element(counts_, {}, kCount);
  if (most == counts_.end()) return std::nullopt;
  const auto present = usual_.has_value() ? counts_.find(*usual_) : counts_.end();
  const bool keeps = present != counts_.end() && present->second * (100 + kMorePercent) >= most->second * 100;
  if (!keeps) usual_ = most->first;
  return usual_;
}

std::optional<int32_t> LaunchThread::Of(const TimeRange& step) {
  newest_.erase(newest_.begin(), newest_.lower_bound(step.from_ns));
  std::map<int32_t, int64_t> within;
  for (auto call = newest_.begin(); call != newest_.end() && call->first < step.to_ns; ++call)
    ++within[call->second];
  const std::optional<int32_t> usual = Usual();
  const auto most = std::ranges::max_element(within, {}, kCount);
  if (most == within.end() || most->second < kMinCalls || within.contains(*usual)) return usual;
  return most->first;
}

}  // namespace gpusonde::diagnose
