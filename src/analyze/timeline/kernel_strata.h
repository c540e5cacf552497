// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "analyze/records.h"
#include "analyze/stats/batch_means.h"
#include "analyze/stats/bounded_table.h"
#include "analyze/stats/fine_counts.h"
#include "analyze/stats/log_moments.h"
#include "analyze/stats/squares.h"
#include "analyze/timeline/copy_watch.h"
#include "analyze/timeline/windows.h"
#include "analyze/trace_state.h"

namespace gpusonde::analyze {

// The kernels of one name and launch shape on a rank.
struct Stratum {
  uint32_t name = 0;
  uint32_t shape = 0;
  Sum sum;
  LogMoments logs;
  MeanError log_error;                       // of the mean of logs, over windows; unknown for communication
  LogMoments alone;                          // without a copy beside or right before
  std::map<uint16_t, LogMoments> with_copy;  // by CopyClass::Pack

  void Merge(const Stratum& other);

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(name);
    archive(shape);
    archive(sum);
    archive(logs);
    archive(log_error);
    archive(alone);
    archive(with_copy);
    for (const auto& [copy, moments] : with_copy) archive.Require(CopyClass::IsPacked(copy));
  }
};

struct StreamSum {
  uint32_t name = 0;
  uint32_t stream = 0;
  Sum sum;

  void Merge(const StreamSum& other) { sum.Merge(other.sum); }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(name);
    archive(stream);
    archive(sum);
  }
};

// How much longer or shorter a window's kernels took than the same kernels (of the same launch shapes) on
// average on this rank.
struct Window {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t kernels = 0;
  int64_t kernel_ns = 0;
  double excess = 0;    // the sum of log durations minus the expected sum, in units
  double variance = 0;  // of that sum under the null hypothesis
  // What they took, and would have taken at other times: by the geometric mean of each name and shape.
  double taken_ns = 0;
  double expected_ns = 0;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(begin_ns);
    archive(end_ns);
    archive(kernels);
    archive(kernel_ns);
    archive(excess);
    archive(variance);
    archive(taken_ns);
    archive(expected_ns);
  }
};

// One of the slowest kernels of its name.
struct SlowKernel {
  int64_t duration_ns = 0;
  int64_t start_ns = 0;
  uint32_t stream = 0;

  // Slowest first; equal ones in order of time.
  auto Key() const { return std::tuple(-duration_ns, start_ns, stream); }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(duration_ns);
    archive(start_ns);
    archive(stream);
  }
};

// The kernels of one name on a rank.
struct NameResult {
  std::vector<SlowKernel> slowest;    // at most kSlowest, slowest first
  double between_windows = 0;         // the sum of squares of durations between windows, in ns²
  int64_t windows = 0;                // windows with kernels
  MeanError launches;                 // of the launches per window, relative to their mean squared
  std::vector<ValueCount> durations;  // of kernels that vary little in the trace (IsStable), by value

  // Adds the kernels of another name.
  void Merge(const NameResult& other);

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(slowest);
    archive(between_windows);
    archive(windows);
    archive(launches);
    archive(durations);
    archive.Require(std::ranges::is_sorted(durations, {}, &ValueCount::value_ns));
  }
};

inline constexpr size_t kSlowest = 16;

// The summary of a rank's kernels for use across ranks.
struct KernelResult {
  std::vector<Stratum> strata;     // those kept, in an order that depends on their names and shapes only
  std::vector<StreamSum> streams;  // likewise
  std::map<uint32_t, NameResult> names;
  std::vector<Window> windows;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(strata);
    archive(streams);
    archive(names);
    archive(windows);
  }
};

// Collects the kernels of one rank, whose first and last times are known. Memory: at most 8,192 strata of 128
// windows each and 4,096 names, 32 MiB, and 16 KiB for each name that varies little.
class KernelStrata {
 public:
  // `name_hashes`: hashes of the names' bytes, by number. `durations`: of the trace's kernels, by name. Must
  // outlive this.
  KernelStrata(std::span<const uint64_t> name_hashes, std::span<const Durations> durations, int64_t first_ns,
               int64_t last_ns);

  // Add kernels by start time. Communication is left out of windows and of the effects of copies, because its
  // duration depends on other ranks.
  void Kernel(const GpuRecord& event, bool is_communication);
  void Copy(const GpuRecord& event);
  void Other(const GpuRecord& event) { copies_.Other(event); }
  KernelResult Finish();

 private:
  static constexpr size_t kMaxStrata = 4096;  // twice as many while gathering
  static constexpr size_t kMaxNames = 2048;

  struct Gathered {
    Stratum stratum;
    std::vector<Batch> windows;  // of logarithms; empty or kWindows

    void Merge(const Gathered& other);
  };
  struct NameSums {
    uint32_t name = 0;
    std::vector<Sum> windows;
    std::vector<SlowKernel> slowest;   // a heap, its fastest first
    std::unique_ptr<FineCounts> fine;  // null: a sketch is fine enough

    void Merge(const NameSums& /*other*/) {}  // names beyond the bound have no windows of their own
    void AddSlow(const SlowKernel& kernel);
  };

  // Where kernels of one name, shape and stream add to.
  struct Place {
    uint32_t name = 0;
    uint32_t shape = 0;
    uint32_t stream = 0;
    uint64_t hash = 0;         // of the stratum
    NameSums* sums = nullptr;  // null: none yet
    FineCounts* fine = nullptr;
    StreamSum* on_stream = nullptr;
    Gathered* stratum = nullptr;
  };
  static constexpr size_t kRecentPlaces = 256;

  // Valid until the next call.
  const Place& PlaceOf(const GpuRecord& event, bool is_communication);
  Place FindPlace(const GpuRecord& event, bool is_communication);
  uint64_t Moves() const { return strata_.moves() + streams_.moves() + names_.moves(); }

  // Of a kernel's start; they come in order.
  size_t WindowOf(int64_t time_ns);
  int64_t EdgeOf(size_t window) const;
  uint64_t HashOf(uint32_t name, uint32_t other) const;
  void TakeKnown();
  void MeasureWindows(std::vector<Window>& windows) const;

  std::span<const uint64_t> name_hashes_;
  std::span<const Durations> durations_;
  int64_t first_ns_;
  int64_t span_ns_;
  size_t window_ = 0;
  int64_t window_end_ns_;  // the first moment of the next one
  BoundedTable<Gathered> strata_;
  BoundedTable<StreamSum> streams_;
  BoundedTable<NameSums> names_;
  // A cache of recent look-ups, by a few bits of the key; valid while Moves() is moves_.
  std::vector<Place> recent_places_;
  uint64_t moves_ = 0;
  std::vector<Sum> windows_;
  CopyWatch copies_;
  std::vector<WatchedKernel> known_;
};

}  // namespace gpusonde::analyze
