// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace gpusonde::serve {

// Decides how long agents wait between requests, so that storing their rows takes at most a quarter of the
// server's CPUs. A commit takes some 20 ms of CPU time however little it adds, so the more agents there are,
// the longer each one pauses. Thread-safe.
class Pace {
 public:
  explicit Pace(int cpus) : cpus_(cpus) {}

  // Records the duration of a commit.
  void Add(int64_t commit_ns);

  // Between kMinPauseMs and kMaxPauseMs.
  int64_t PauseMs(size_t agents) const;

  static constexpr int64_t kMinPauseMs = 10'000;
  static constexpr int64_t kMaxPauseMs = 60'000;  // agents never wait longer, whatever the server answers

 private:
  const int cpus_;
  mutable std::mutex mutex_;  // guards what follows
  double mean_ns_ = 0;        // of the last hundred commits or so
};

}  // namespace gpusonde::serve
