// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "analyze/records.h"
#include "analyze/stats/bounded_table.h"

namespace gpusonde::analyze {

// Kernels that follow each other on a stream of a rank, and do so repeatedly.
struct KernelSequence {
  static constexpr size_t kMinKernels = 2;
  static constexpr size_t kMaxKernels = 8;

  std::vector<uint32_t> names;  // in the order of their starts
  int64_t count = 0;            // occurrences, of which no two have a kernel in common
  int64_t kernel_ns = 0;        // durations of all their kernels; saturates
  int64_t gap_ns = 0;           // between these kernels, while the stream had no work; saturates
  int64_t first_ns = 0;         // the start of the first occurrence

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(names);
    archive(count);
    archive(kernel_ns);
    archive(gap_ns);
    archive(first_ns);
    archive.Require(names.size() >= kMinKernels && names.size() <= kMaxKernels);
  }
};

struct RankSequences {
  static constexpr size_t kMaxSequences = 20;

  std::vector<KernelSequence> sequences;  // at most kMaxSequences, by descending kernel_ns + gap_ns
  int64_t beyond_bound = 0;               // occurrences of sequences, and kernels of streams, left out

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(sequences);
    archive(beyond_bound);
  }
};

// Counts the sequences of 2 to 8 kernels of a rank. Anything but a kernel on the stream ends a sequence.
//
// Nearly all sequences are parts, rotations or repetitions of others, so Finish chooses: those that occur at
// least kMinCount times and aren't a shorter sequence repeated, in the order of their time; each pair of
// neighbours is only in the first of these that has it, whose last and first kernel are neighbours too.
//
// Memory: 16,384 pairs of a sequence and a stream have sums of their own, twice as many while counting, 4
// MiB; which do depends only on the names and streams. Takes 0.2 µs per kernel.
class SequenceFollower {
 public:
  static constexpr size_t kMaxSums = 16'384;
  static constexpr size_t kMaxStreams = 1'024;
  static constexpr int64_t kMinCount = 3;

  // `name_hashes`: of the names' bytes, by number; must outlive it.
  explicit SequenceFollower(std::span<const uint64_t> name_hashes)
      : name_hashes_(name_hashes), sums_(kMaxSums) {}

  // GPU work, by start time.
  void Add(const GpuRecord& event);
  RankSequences Finish() &&;

 private:
  struct Kernel {
    uint32_t name = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };
  struct Stream {
    std::array<Kernel, KernelSequence::kMaxKernels> last;  // a ring
    uint64_t kernels = 0;
    size_t in_a_row = 0;  // since anything else, at most kMaxKernels
  };
  // The occurrences of a sequence on a stream.
  struct Sums {
    std::array<uint32_t, KernelSequence::kMaxKernels> names{};
    uint32_t length = 0;     // 0: those of sequences beyond the bound
    uint64_t free_from = 0;  // the first kernel of the stream that no occurrence has
    int64_t count = 0;
    int64_t kernel_ns = 0;
    int64_t gap_ns = 0;
    int64_t first_ns = 0;

    void Merge(const Sums& other) { count += other.count; }
  };
  // Null if there are too many.
  Stream* StreamOf(uint32_t stream);
  std::vector<KernelSequence> SumOverStreams() const;

  std::span<const uint64_t> name_hashes_;
  std::unordered_map<uint32_t, Stream> streams_;
  BoundedTable<Sums> sums_;
  int64_t beyond_bound_ = 0;
};

}  // namespace gpusonde::analyze
