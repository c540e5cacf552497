// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace gpusonde::serve {

// How long agents wait between requests, so that storing what they send takes a quarter of the server's CPUs
// at most. A commit takes some 20 ms of CPU time however little it adds: the more agents there are, the more
// seconds each sends at once. Thread-safe.
class Pace {
 public:
  explicit Pace(int cpus) : cpus_(cpus) {}

  // A commit has taken so long.
  void Add(int64_t commit_ns);

  // Between kMinPauseMs and kMaxPauseMs.
  int64_t PauseMs(size_t agents) const;

  static constexpr int64_t kMinPauseMs = 10'000;
  static constexpr int64_t kMaxPauseMs = 60'000;  // agents wait no longer, whatever they are told

 private:
  const int cpus_;
  mutable std::mutex mutex_;  // guards what follows
  double mean_ns_ = 0;        // of the last hundred commits or so
};

}  // namespace gpusonde::serve
