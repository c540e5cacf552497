// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/int128.h"
#include "model/sketch.h"

namespace gpusonde::analyze {

// How one thread launches kernels and graphs on a device. A gap is from the begin of a launch to that of the
// thread's next one. Gaps are counted by powers of two, so that after all of them, those from any power of
// two on can be taken as pauses between bursts.
struct ThreadLaunches {
  // The first bucket has gaps below this; each further one has those below its double. A thread that launches
  // as fast as it can has gaps of 2 to 10 µs, an eager framework some 10 to 50 µs.
  static constexpr int kFirstBits = 16;
  static constexpr size_t kBuckets = 64 - kFirstBits;
  static constexpr size_t BucketOf(int64_t gap_ns) {
    return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(gap_ns) >> kFirstBits));
  }
  // The smallest gap of a bucket but the first.
  static constexpr int64_t LowestOf(size_t bucket) {
    return int64_t{1} << (kFirstBits - 1 + static_cast<int>(bucket));
  }

  static Int128 SumOf(const std::array<int64_t, kBuckets>& numbers) {
    Int128 sum = 0;
    for (const int64_t number : numbers) sum += number;
    return sum;
  }

  uint32_t thread = 0;
  int64_t launches = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  int64_t longest_gap_ns = 0;
  model::Sketch gaps;
  std::array<int64_t, kBuckets> gap_ns = {};
  // Gaps at whose end no launch of the rank waited for the GPU.
  std::array<int64_t, kBuckets> drained = {};
  // Launches by the shorter of the gaps before and after them.
  std::array<int64_t, kBuckets> lone = {};
  // How many of the rank's launches waited for the GPU when this thread launched, summed.
  int64_t waiting = 0;
  model::Sketch behind;  // start on the GPU − begin of the launch

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(thread);
    archive(launches);
    archive(first_ns);
    archive(last_ns);
    archive(longest_gap_ns);
    archive(gaps);
    for (auto* const sums : {&gap_ns, &drained, &lone})
      for (int64_t& sum : *sums) {
        archive(sum);
        archive.Require(sum >= 0, "launch_patterns.threads");
      }
    archive(waiting);
    archive(behind);
    archive.Require(launches > 0 && longest_gap_ns >= 0 && waiting >= 0 &&
                        gaps.count() == static_cast<uint64_t>(launches - 1) && SumOf(lone) == launches &&
                        SumOf(drained) < launches && SumOf(gap_ns) == Int128{last_ns} - first_ns,
                    "launch_patterns.threads");
  }
};

// How the threads of a process launch kernels and graphs on one device.
struct LaunchPattern {
  // Few programs launch from more than the two threads of PyTorch's forward and backward pass.
  static constexpr size_t kMaxThreads = 64;

  std::vector<ThreadLaunches> threads;  // by their first launch
  int64_t others = 0;                   // launches of further threads

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(threads);
    archive(others);
    archive.Require(threads.size() <= kMaxThreads && others >= 0, "launch_patterns.other_launches");
  }
};

class LaunchFollower {
 public:
  // A launch of a kernel or a graph, by time; `waiting`: how many launches of the rank wait for the GPU.
  void Launch(uint32_t thread, int64_t time_ns, int64_t waiting);
  // Work that such a launch started on the GPU.
  void Start(uint32_t thread, int64_t behind_ns) {
    if (const size_t place = PlaceOf(thread); place < result_.threads.size())
      result_.threads[place].behind.Add(behind_ns);
  }
  LaunchPattern Finish() &&;

 private:
  static constexpr int64_t kNoGap = INT64_MAX;

  // LaunchPattern::kMaxThreads for threads beyond the bound; result_.threads.size() for new ones.
  size_t PlaceOf(uint32_t thread) {
    if (recent_ < result_.threads.size() && result_.threads[recent_].thread == thread) return recent_;
    return FindPlace(thread);
  }
  size_t FindPlace(uint32_t thread);

  LaunchPattern result_;
  std::vector<int64_t> gaps_before_ns_;  // the gap before the last launch of each thread
  size_t recent_ = 0;
};

}  // namespace gpusonde::analyze
