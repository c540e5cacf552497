// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The lines of a report about kernels, copies and calls by name. Times are ns.
namespace gpusonde::analyze {

// Durations of one kind of event; all but the count is 0 if there were none.
struct DurationLine {
  std::string name;
  int64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  int64_t mean_ns = 0;
  int64_t stddev_ns = 0;
  int64_t p50_ns = 0;
  int64_t p90_ns = 0;
  int64_t p99_ns = 0;
  int64_t outliers = 0;
};

// How the durations of a kernel are distributed.
struct DistributionLine {
  struct Bin {
    int64_t low_ns = 0;
    int64_t high_ns = 0;  // exclusive
    int64_t count = 0;
  };
  std::string name;
  std::vector<Bin> bins;  // at most 32, adjacent, equally wide on a logarithmic scale
};

struct TransferLine {
  std::string_view kind;  // of copies; empty for sets
  std::string_view source;
  std::string_view target;
  int64_t bytes = 0;
  DurationLine durations;
};

// Shares of a kernel's variance that groupings explain, 0 to 1 (stats/squares.h).
struct VarianceShares {
  double time = 0;  // of the variance within ranks: windows of a 128th of a rank's span
  double rank = 0;
  double stream = 0;
  double shape = 0;  // grid and block
};

// One of the slowest kernels of a name.
struct SlowLine {
  int64_t rank = 0;
  uint32_t stream = 0;
  int64_t start_ns = 0;  // since the first GPU event of its rank
  int64_t duration_ns = 0;
};

struct VariabilityLine {
  std::string name;
  bool communication = false;  // its duration depends on other ranks
  int64_t count = 0;
  int64_t excess_ns = 0;  // beyond as many of typical duration, by rank and launch shape
  double robust_cv = 0;   // 1.4826 · MAD / median
  VarianceShares explained;
  int64_t outliers = 0;
  std::vector<SlowLine> slowest;
};

// A kernel that takes longer beside or right after copies: an association, not necessarily caused by them.
struct CopyEffectLine {
  std::string name;
  bool after = false;     // right after; else beside
  bool any_copy = false;  // all copies together; else those of this kind, memory and size:
  std::string_view copy_kind;
  std::string_view memory;
  std::string_view size;
  int64_t count = 0;
  double ratio = 1;  // of geometric means, with its 95 % interval
  double low = 1;
  double high = 1;
  int64_t excess_ns = 0;  // total time that the ratio amounts to
};

// The kernels that take most time on a rank.
struct RankKernelsLine {
  struct Kernel {
    std::string name;
    int64_t count = 0;
    int64_t total_ns = 0;
  };
  int64_t rank = 0;
  size_t trace = 0;
  std::vector<Kernel> kernels;  // at most 10, largest first
  int64_t others_ns = 0;        // in all others
};

// Sequences of kernels that repeat on a rank's streams (timeline/kernel_sequences.h).
struct SequencesLine {
  struct Sequence {
    std::vector<std::string> kernels;  // in the order of their starts
    int64_t count = 0;
    int64_t kernel_ns = 0;
    int64_t gap_ns = 0;    // between these kernels, while their stream had no work
    int64_t first_ns = 0;  // the start of the first occurrence, by the trace's own clock
  };
  int64_t rank = 0;
  size_t trace = 0;
  std::vector<Sequence> sequences;  // at most 20, by descending kernel_ns + gap_ns
};

// A communication kernel.
struct CommunicationLine {
  std::string name;
  std::string_view library;  // CommunicationKernels::LibraryOf
  int64_t count = 0;
  int64_t total_ns = 0;
};

// GPU work by what was open on the thread that launched it (detail/operators.h).
struct OperatorLine {
  struct Kernel {
    std::string name;  // of copies and sets "[copy htod]", "[set]"
    int64_t count = 0;
    int64_t total_ns = 0;
  };
  std::string_view kind;  // operator, module, range
  std::string name;
  int64_t calls = 0;
  int64_t host_ns = 0;   // of the calls, nested ones too
  int64_t launches = 0;  // GPU work
  int64_t self_ns = 0;   // of work that no nested one of the kind launched
  int64_t total_ns = 0;
  std::vector<Kernel> kernels;  // at most 3, largest total first
};

// What a rank's kernels lose in last waves of blocks (detail/waves.h).
struct WavesLine {
  struct Kernel {
    std::string name;
    int64_t count = 0;
    int64_t total_ns = 0;
    int64_t lost_ns = 0;
  };
  int64_t rank = 0;
  size_t trace = 0;
  int64_t known_ns = 0;         // of kernels whose waves are known
  int64_t unknown_ns = 0;       // of others
  int64_t lost_ns = 0;          // at most
  std::vector<Kernel> kernels;  // that lose most, at most 20
};

// A metric of Nsight Compute's over the launches of one kernel. Values are in `unit`.
struct KernelMetricLine {
  std::string name;
  std::string metric;
  std::string unit;
  int64_t launches = 0;
  int64_t ranks = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  double stddev = 0;
  double p50 = 0;
  double p90 = 0;
  double robust_cv = 0;    // 1.4826 · MAD / median
  double share_rank = 0;   // of the variance that the rank explains, 0 to 1
  double share_shape = 0;  // … the launch shape
  // Correlation with the launches' durations; empty if either doesn't vary.
  std::optional<double> correlation;
  std::optional<double> correlation_within_shape;  // among launches of one shape
};

}  // namespace gpusonde::analyze
