// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/name_table.h"
#include "analyze/rank_table.h"
#include "importers/event.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

// How many blocks of a launch a device runs at a time, by what each needs and a multiprocessor has (CUDA C++
// Programming Guide, "Hardware Implementation"; the granularities of NVIDIA's occupancy calculator). Empty if
// the trace doesn't say enough, or nothing fits.
struct LaunchShape {
  int64_t blocks = 0;
  int64_t threads = 0;  // per block
  int64_t registers = 0;
  int64_t shared_bytes = 0;  // per block

  auto operator<=>(const LaunchShape&) const = default;
};
std::optional<int64_t> ConcurrentBlocks(const LaunchShape& shape, const importers::TracedDevice& device);

// What a rank's kernels lose in last waves: blocks run in waves of as many as fit, and a launch of n waves
// takes ⌈n⌉ of them. Only launches of more than one wave count, as a smaller one can't fill the device.
struct RankWaves {
  struct Kernel {
    std::string name;
    int64_t count = 0;
    int64_t total_ns = 0;
    int64_t lost_ns = 0;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(name);
      archive(count);
      archive(total_ns);
      archive(lost_ns);
    }
  };
  static constexpr size_t kMaxKernels = 20;

  RankKey rank;
  int64_t known_ns = 0;         // of kernels whose waves are known
  int64_t unknown_ns = 0;       // of others
  int64_t lost_ns = 0;          // at most: the blocks of a last wave may run faster
  std::vector<Kernel> kernels;  // that lose most

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(rank);
    archive(known_ns);
    archive(unknown_ns);
    archive(lost_ns);
    archive(kernels);
  }
};

// Sums the kernels of a trace by rank, name and shape: what a device runs at a time may only be known at the
// trace's end. Not thread-safe.
class WaveTable {
 public:
  // Of more different launches, others are unknown.
  static constexpr size_t kMaxShapes = 100'000;

  void Add(const importers::GpuEvent& event, const importers::GpuDetail& detail);
  // By rank.
  std::vector<RankWaves> Finish(std::span<const importers::TracedDevice> devices,
                                const NameTable& names) const;

 private:
  struct Key {
    RankKey rank;
    uint32_t name = 0;
    LaunchShape shape;
    auto operator<=>(const Key&) const = default;
  };
  struct Sums {
    int64_t count = 0;
    int64_t total_ns = 0;
  };
  std::map<Key, Sums> shapes_;
};

}  // namespace gpusonde::analyze
