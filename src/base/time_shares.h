// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

namespace gpusonde {

// Shares of this thread's time, so that no user of the machine can use it up. In each window of `window_ns`,
// every user may spend `user_ns` and all of them together `all_ns`; work that takes longer is charged to the
// windows after it. Not thread-safe.
class TimeShares {
 public:
  TimeShares(int64_t window_ns, int64_t user_ns, int64_t all_ns)
      : window_ns_(window_ns), user_ns_(user_ns), all_ns_(all_ns) {}

  // Whether work for this user may begin. `now_ns`: CLOCK_MONOTONIC.
  bool HasTime(int32_t user_id, int64_t now_ns);
  void Spend(int32_t user_id, int64_t spent_ns);

 private:
  int64_t window_ns_, user_ns_, all_ns_;
  int64_t begin_ns_ = 0;  // of the current window
  int64_t spent_ns_ = 0;
  std::unordered_map<int32_t, int64_t> spent_by_user_;
};

}  // namespace gpusonde
