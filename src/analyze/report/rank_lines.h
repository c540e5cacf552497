// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report/kernel_lines.h"
#include "base/saturated.h"

// The lines of a report about what ranks and their processes did over time. Times are ns.
namespace gpusonde::analyze {

// Time without work on a device, by what ended it (timeline/rank_timeline.h).
struct IdleLine {
  int64_t host_ns = 0;
  int64_t back_to_back_ns = 0;
  int64_t device_ns = 0;
  int64_t unknown_ns = 0;

  int64_t sum_ns() const {
    return AddSaturated(AddSaturated(host_ns, back_to_back_ns), AddSaturated(device_ns, unknown_ns));
  }
};

// Idle time because the host had launched nothing, by the length of the gaps (timeline/host_gaps.h).
struct HostGapsLine {
  int64_t short_ns = 0;  // under 1 ms
  int64_t short_count = 0;
  int64_t long_ns = 0;
  int64_t long_count = 0;
  struct Gap {
    int64_t begin_ns = 0;  // since the first GPU event of the rank
    int64_t end_ns = 0;
  };
  std::vector<Gap> longest;  // at most 8, longest first
};

// Waits of the host for a data loader (timeline/loader_waits.h).
struct LoaderLine {
  int64_t count = 0;
  int64_t total_ns = 0;
  int64_t idle_ns = 0;                     // of the device within them, as the host had launched nothing
  std::vector<HostGapsLine::Gap> longest;  // stretches of that, at most 3, longest first
};

// Launch calls that were blocked as the queue of their stream was full (timeline/full_queue.h).
struct FullQueueLine {
  int64_t count = 0;
  int64_t blocked_ns = 0;
  std::vector<HostGapsLine::Gap> longest;  // at most 3, longest first
};

// Sets that block the host (timeline/blocking_sets.h).
struct BlockingSetsLine {
  int64_t count = 0;
  int64_t call_ns = 0;
  int64_t set_ns = 0;
};

// A process on a device: what the device did over time.
struct RankLine {
  int64_t rank = 0;  // in the job: from the trace, else the index in this list
  size_t trace = 0;
  int64_t process = 0;  // 0 if the format doesn't have it
  int32_t device = 0;
  int64_t events = 0;
  int64_t begin_ns =
      0;  // its first start, relative to the first of all ranks, by the traces' clocks (see alignment)
  int64_t first_ns = 0;     // its first start by its trace's own clock
  int64_t span_ns = 0;      // from the first start to the last end, without:
  int64_t left_out_ns = 0;  // times without any event of the trace (recorded_time.h)
  int64_t busy_ns = 0;
  int64_t idle_ns = 0;
  int64_t compute_ns = 0;
  int64_t comm_ns = 0;
  int64_t exposed_comm_ns = 0;  // without concurrent computation
  int64_t overlap_ns = 0;       // of communication with computation
  int64_t transfer_ns = 0;      // copies and sets
  int64_t transfer_overlap_ns = 0;
  int64_t graph_ns = 0;  // in CUDA graphs that were traced as a whole
  IdleLine idle;         // of the device; sums to idle_ns
  IdleLine gaps;         // of each stream, summed
  HostGapsLine host_gaps;
  LoaderLine loader;
  FullQueueLine full_queue;
  BlockingSetsLine blocking_sets;
  std::vector<int64_t> busy_windows_ns;  // of each 128th of the span; empty if there were no events
  DurationLine launch_latency;
  DurationLine queue_delay;
  int64_t queue_max = 0;
  double queue_mean = 0;       // over its changes
  double queue_time_mean = 0;  // over time

  // Of copies and sets, without kernels and, as what ran in these is unknown, without whole graphs: at least.
  int64_t only_transfer_ns() const {
    const int64_t without_kernels_ns = busy_ns - compute_ns - comm_ns + overlap_ns;
    return std::max<int64_t>(0, std::min(transfer_ns - transfer_overlap_ns, without_kernels_ns - graph_ns));
  }
};

// A stretch of time in which a rank's kernels took longer than the same kernels at other times on that rank.
struct WindowLine {
  int64_t rank = 0;
  int64_t begin_ns = 0;  // since the first GPU event of its rank
  int64_t end_ns = 0;
  int64_t kernels = 0;
  int64_t kernel_ns = 0;
  double ratio = 1;  // of their time to that at other times
  double z = 0;      // of its most unusual window
};

// A rank whose kernels take longer than the same kernels on the other ranks.
struct SlowRankLine {
  // A kernel that makes up most of the difference, far beyond its share of the time.
  struct Kernel {
    std::string name;  // empty: there is none, all kernels are slow
    double ratio = 1;
    int64_t excess_ns = 0;
  };

  int64_t rank = 0;
  int64_t kernels = 0;
  double ratio = 1;  // of the time of all, to what they would take on the other ranks
  double low = 1;
  double high = 1;
  Kernel mostly;
};

// Calls that waited for the GPU (sync_calls.h), beside one rank's device.
struct SyncsLine {
  struct Sum {
    int64_t count = 0;
    int64_t total_ns = 0;
    int64_t busy_ns = 0;  // of the device meanwhile

    int64_t idle_ns() const { return total_ns - busy_ns; }
  };
  struct Call {
    std::string name;
    Sum sum;
  };
  struct Thread {
    int64_t thread = 0;  // 0 if the trace doesn't say
    Sum sum;
  };
  int64_t rank = 0;
  size_t trace = 0;
  Sum all;
  std::vector<Call> calls;          // at most 20, by descending total_ns
  std::vector<Thread> threads;      // at most 20, by descending total_ns
  std::optional<Sum> typical_step;  // the one with the median total, if the rank has steps
};

// What a rank's device did at the same time (timeline/concurrency.h).
struct ConcurrencyLine {
  using StreamNumber = std::optional<int64_t>;  // empty: all beyond the first 64
  struct Stream {
    StreamNumber stream;
    int64_t events = 0;
    int64_t busy_ns = 0;
    IdleLine gaps;  // of each stream alone
  };
  struct Pair {
    StreamNumber first;
    StreamNumber second;
    int64_t shared_ns = 0;  // in which both have work
  };
  struct Kinds {
    std::string_view first;
    std::string_view second;
    int64_t shared_ns = 0;
  };
  struct KindTime {
    std::string_view kind;
    int64_t busy_ns = 0;
  };
  int64_t rank = 0;
  size_t trace = 0;
  std::array<int64_t, 4> running_ns = {};  // with 1, 2, 3, and 4 or more events at the same time
  double mean = 0;                         // while busy
  std::vector<Kinds> kinds;                // of work that share time, by descending shared_ns
  std::vector<KindTime> kind_times;        // of the kinds that took time
  std::vector<Stream> streams;             // at most 65, by descending busy_ns
  std::vector<Pair> pairs;                 // of streams that share time, at most 100, by descending shared_ns

  int64_t several_ns() const { return running_ns[1] + running_ns[2] + running_ns[3]; }
  int64_t busy_ns() const { return running_ns[0] + several_ns(); }
};

// How the threads of a rank launch kernels and graphs (timeline/launch_pattern.h).
struct LaunchPatternLine {
  // Bursts are two launches and more without a pause between them.
  struct Thread {
    int64_t thread = 0;  // 0 if the trace doesn't say
    int64_t launches = 0;
    int64_t span_ns = 0;  // from the first to the last
    int64_t gap_p50_ns = 0;
    int64_t gap_p99_ns = 0;
    int64_t gap_max_ns = 0;
    int64_t pause_from_ns = 0;  // the shortest gap that is a pause
    int64_t pauses = 0;
    int64_t pauses_ns = 0;
    int64_t pause_p50_ns = 0;
    int64_t drained_pauses = 0;  // at whose end no launch of the rank waited for the GPU
    int64_t bursts = 0;
    int64_t burst_launches = 0;
    int64_t burst_gap_p50_ns = 0;
    int64_t behind_p50_ns = 0;  // from the begin of the launch to the start on the GPU
    int64_t behind_p99_ns = 0;
    double waiting_mean = 0;  // launches of the rank that wait for the GPU when this thread launches

    enum class Pattern : uint8_t { kFew, kSteady, kBursts };
    Pattern pattern() const;
    double mean_burst() const;
    std::optional<double> launches_per_s() const;  // empty without time between them
  };
  int64_t rank = 0;
  size_t trace = 0;
  std::vector<Thread> threads;  // at most 20, by descending launches
  int64_t others = 0;           // launches of other threads
};

// A rank in the collectives that all ranks took part in.
struct CollectiveLine {
  int64_t rank = 0;
  int64_t matched = 0;
  int64_t last = 0;               // in how many it arrived last: its kernel was the shortest
  int64_t waited_ns = 0;          // for the last rank, in total
  int64_t delayed_ns = 0;         // how long it delayed the first rank when it was last
  int64_t clock_offset_ns = 0;    // median difference of the ends to those of the first rank
  int64_t clock_residual_ns = 0;  // median absolute deviation from that
  bool straggler = false;         // last more often than by chance
};

// How fast the ranks of a group moved messages of about one size, as nccl-tests defines it.
struct BandwidthLine {
  std::string group;           // importers::ProcessGroup::label
  int64_t ranks = 0;           // that the group has; 0 if unknown
  std::string_view operation;  // importers::Name
  int64_t min_bytes = 0;       // of a message; all are in one power of two
  int64_t max_bytes = 0;
  int64_t count = 0;     // collectives; without `skew_removed` their kernels, of each rank
  int64_t bytes = 0;     // of all messages; saturates
  int64_t total_ns = 0;  // in them
  // Whether total_ns is from when the last rank came, as the traces have all ranks of the group. Else it
  // contains waits for other ranks.
  bool skew_removed = false;
  int64_t skew_ns = 0;                          // what the first rank waited before, which is not in total_ns
  std::optional<double> algorithm_bytes_per_s;  // unknown if they took no time
  std::optional<double> bus_bytes_per_s;        // also without the number of ranks
};

// A critical path through a step (detail/critical_path.h).
struct CriticalPathLine {
  struct Part {
    std::string_view kind;
    std::string name;  // of kernels, calls, operators
    int64_t count = 0;
    int64_t total_ns = 0;
  };
  int64_t rank = 0;
  size_t trace = 0;
  int64_t number = 0;    // of the step, as in StepsLine
  bool slow = false;     // else the typical one
  int64_t begin_ns = 0;  // on the device, by the trace's own clock
  int64_t end_ns = 0;
  std::vector<Part> parts;  // largest first; they add up to the whole
};

// The parts of a step's time on the device, or of typical steps.
struct StepParts {
  int64_t compute_ns = 0;
  int64_t exposed_comm_ns = 0;  // communication without computation
  int64_t other_ns = 0;         // copies, sets and whole graphs without kernels
  int64_t idle_ns = 0;
};

// The clock of a rank's device, where its trace has samples (findings/clocks.cpp).
struct ClockLine {
  int64_t rank = 0;
  size_t trace = 0;
  int64_t samples = 0;                     // within the rank's span
  int64_t usual_mhz = 0;                   // that nine tenths of the time with samples have at most
  int64_t lowest_mhz = 0;                  // while low and slow
  int64_t slow_ns = 0;                     // of slow steps on the device, and of unusual windows
  int64_t slow_low_ns = 0;                 // of that, with a low clock
  int64_t other_low_ns = 0;                // of the rest of the span, with a low clock
  int64_t lost_ns = 0;                     // of slow_low_ns, if speed follows the clock
  uint64_t throttle_reasons = 0;           // of samples while low and slow: bits of model/metric_catalogue.h
  std::vector<HostGapsLine::Gap> longest;  // low and slow, at most 3, longest first
};

// The steps of a rank: the ranges that its program repeats (steps/).
struct StepsLine {
  struct Kernel {
    std::string name;
    int64_t excess_ns = 0;  // beyond the mean of all steps
  };
  // A step that takes long.
  struct Slow {
    int64_t number = 0;    // from 0, in order of time
    int64_t begin_ns = 0;  // of its range, by the trace's own clock
    int64_t step_ns = 0;
    int64_t gpu_begin_ns = 0;  // of the first work that it launched, by that clock; 0 without any
    int64_t gpu_ns = 0;        // until the first work of the next step
    StepParts parts;
    std::vector<Kernel> kernels;  // that took longer than on average, at most 3
  };
  int64_t rank = 0;
  size_t trace = 0;
  std::string label;          // what the names of the ranges have in common
  DurationLine durations;     // from the start of one to the start of the next
  StepParts typical;          // medians
  std::vector<Slow> slowest;  // that take 1.2 medians or more, at most 5
};

}  // namespace gpusonde::analyze
