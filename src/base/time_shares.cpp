// SPDX-License-Identifier: Apache-2.0
#include "base/time_shares.h"

#include <algorithm>

namespace gpusonde {
namespace {

// Bounds the products below; no debt lasts longer.
constexpr int64_t kMaxWindows = 10'000;

}  // namespace

bool TimeShares::HasTime(int32_t user_id, int64_t now_ns) {
  if (const int64_t windows = (now_ns - begin_ns_) / window_ns_; windows > 0) {
    begin_ns_ += windows * window_ns_;
    const int64_t passed = std::min(windows, kMaxWindows);
    spent_ns_ = std::max<int64_t>(0, spent_ns_ - passed * all_ns_);
    for (auto& spent : spent_by_user_) spent.second -= passed * user_ns_;
    std::erase_if(spent_by_user_, [](const auto& spent) { return spent.second <= 0; });
  }
  const auto spent = spent_by_user_.find(user_id);
  return spent_ns_ < all_ns_ && (spent == spent_by_user_.end() || spent->second < user_ns_);
}

void TimeShares::Spend(int32_t user_id, int64_t spent_ns) {
  spent_ns_ += spent_ns;
  spent_by_user_[user_id] += spent_ns;
}

}  // namespace gpusonde
