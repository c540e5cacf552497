// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/saturated.h"

// The result of an analysis, as docs/analyze-json.md describes it. Times are ns.
namespace gpusonde::analyze {

struct TraceLine {
  std::string path;
  std::string_view format;
  int64_t events = 0;
  int64_t kernels = 0;
  int64_t kernel_ns = 0;
  int64_t memcpys = 0;
  int64_t memcpy_bytes = 0;
  int64_t memcpy_ns = 0;
  int64_t memsets = 0;
  int64_t api_calls = 0;
  int64_t ranges = 0;
  int64_t dropped = 0;
  int64_t duration_ns = 0;
  int64_t graphs = 0;  // launches of CUDA graphs that were traced as a whole
  int64_t graph_ns = 0;
};

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

// A stretch of time in which a rank's kernels took longer than the same kernels at other times on that rank.
struct WindowLine {
  int64_t rank = 0;
  int64_t begin_ns = 0;  // since the first GPU event of its rank
  int64_t end_ns = 0;
  int64_t kernels = 0;
  int64_t kernel_ns = 0;
  double ratio = 1;  // of geometric means
  double z = 0;      // of its most unusual window
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

// A rank whose kernels take longer than the same kernels on the other ranks.
struct SlowRankLine {
  int64_t rank = 0;
  int64_t kernels = 0;
  double ratio = 1;
  double low = 1;
  double high = 1;
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

// What may be done about a well-known trouble (advice/).
struct AdviceLine {
  // A time by the clock of a trace, in ns.
  struct Place {
    size_t trace = 0;
    int64_t rank = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  std::string_view rule;
  std::optional<int64_t> rank;  // the one that loses most; empty if the figures are means over all ranks
  int64_t ranks = 0;            // how many have the trouble
  int64_t gain_ns = 0;          // what that rank may gain at most
  int64_t span_ns = 0;          // of that rank
  std::string finding;          // what was found, about that rank; no names
  std::string action;
  std::string gain_basis;          // how the gain was computed
  std::vector<std::string> names;  // kernels or calls that it is about, at most 3
  std::vector<Place> places;       // where it is to be seen, at most 3
};

// A caveat about a trace's numbers.
struct Note {
  size_t trace = 0;
  std::string_view kind;  // truncated, or why events were dropped
  int64_t count = 0;
  // What it is about, by the trace's own clock; of several times the longest.
  struct Time {
    int64_t times = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  std::optional<Time> time = std::nullopt;
};

// How the clocks of several traces are aligned.
enum class Alignment : uint8_t {
  kNone,         // not at all: each clock is trusted
  kCollectives,  // all ranks leave a collective together
};

struct Report {
  Alignment alignment = Alignment::kNone;
  std::vector<TraceLine> traces;
  std::vector<DurationLine> kernels;
  std::vector<DistributionLine> distributions;  // of the first 20 kernels
  std::vector<DurationLine> graphs;  // launches of CUDA graphs that were traced as a whole, by graph
  std::vector<TransferLine> memcpys;
  std::vector<TransferLine> memsets;
  std::vector<DurationLine> api_calls;
  std::vector<RankLine> ranks;
  std::vector<VariabilityLine> variability;
  std::vector<WindowLine> windows;
  std::vector<CopyEffectLine> copy_effects;
  std::vector<SlowRankLine> slow_ranks;
  std::vector<CollectiveLine> collectives;
  std::vector<BandwidthLine> bandwidth;
  std::vector<CommunicationLine> communication;
  std::vector<KernelMetricLine> kernel_metrics;
  std::vector<RankKernelsLine> rank_kernels;
  std::vector<StepsLine> steps;
  std::vector<SyncsLine> syncs;
  std::vector<ConcurrencyLine> concurrency;
  std::vector<LaunchPatternLine> launch_patterns;
  std::vector<ClockLine> clocks;
  std::vector<OperatorLine> operators;           // with Options::operators
  std::vector<CriticalPathLine> critical_paths;  // with Options::critical_path
  std::vector<WavesLine> waves;                  // with Options::waves
  std::vector<SequencesLine> sequences;          // with Options::sequences
  std::vector<AdviceLine> advice;
  std::vector<Note> notes;
};

// One line of JSON with a line break, keys in the order of docs/analyze-json.md.
std::string ToJson(const Report& report);
// For terminals: the most important findings as sentences, then tables.
std::string ToText(const Report& report);
// A self-contained page of at most 3 MB, for browsers and printers: no script, and nothing is loaded.
std::string ToHtml(const Report& report);

// A note of the report as a sentence without a stop; unknown kinds are returned as they are.
std::string SentenceOf(const Note& note, const Report& report);

}  // namespace gpusonde::analyze
