// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <thread>
#include <vector>

namespace gpusonde::fleet {

// Calls work(index, worker) for each index below `count`, worker being below `threads`. Which worker gets
// which index is not determined. Returns when all calls have returned. `work` must not throw.
template <class Work>
void ForEachIndex(size_t count, int threads, const Work& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&](size_t worker) {
    for (size_t index = next++; index < count; index = next++) work(index, worker);
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run, static_cast<size_t>(i));
  run(0);
}

// CPU time of this thread so far, in ns. One call takes about 0.2 µs.
inline int64_t ThreadTimeNs() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace gpusonde::fleet
