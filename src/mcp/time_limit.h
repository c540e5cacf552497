// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "mcp/source.h"

namespace gpusonde::mcp {

// Interrupts a source from the given time on, as long as this exists. The caller resumes the source
// afterwards.
class TimeLimit {
 public:
  TimeLimit(Source& source, std::chrono::milliseconds limit);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  bool exceeded() const { return exceeded_; }

 private:
  void Watch(Source& source, std::chrono::steady_clock::time_point deadline);

  std::atomic<bool> exceeded_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;  // guarded by mutex_
  std::thread watch_;
};

}  // namespace gpusonde::mcp
