// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analyze/communication.h"
#include "analyze/extent.h"
#include "analyze/steps/step_times.h"
#include "analyze/timeline/blocking_sets.h"
#include "analyze/timeline/busy_windows.h"
#include "analyze/timeline/full_queue.h"
#include "analyze/timeline/host_gaps.h"
#include "analyze/timeline/kernel_sequences.h"
#include "analyze/timeline/kernel_strata.h"
#include "analyze/timeline/launch_pattern.h"
#include "analyze/timeline/loader_waits.h"
#include "analyze/timeline/rank_timeline.h"
#include "analyze/timeline/sync_times.h"
#include "analyze/trace_state.h"
#include "base/result.h"

namespace gpusonde::analyze {

// A communication kernel.
struct Collective {
  uint32_t name = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t collective = 0;  // importers::PackCollective with a group of the trace; 0: unknown
  // As importers::Message says; 0 and unknown if it doesn't.
  importers::Operation operation = importers::Operation::kUnknown;
  int64_t bytes = 0;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(name);
    archive(start_ns);
    archive(end_ns);
    archive(collective);
    archive(operation);
    archive(bytes);
    archive.Require(operation <= importers::Operation::kSendReceive && bytes >= 0 &&
                    bytes <= importers::Message::kMaxBytes);
  }
};

// The timeline of one rank. Names are numbered as in the state that it comes from.
struct RankResult {
  RankKey key;
  Extent extent;
  int64_t left_out_ns = 0;   // of it, as nothing was recorded (UnrecordedTime)
  int64_t gpu_ahead_ns = 0;  // of the calls' clock, see EstimateGpuClock; all other times are the GPU's
  RankTimeline timeline;
  std::vector<int64_t> busy_windows_ns;  // BusyWindows; kWindows of them
  HostGaps host_gaps;
  LoaderWaits loader;
  FullQueue full_queue;
  BlockingSets blocking_sets;
  QueueLength queue;
  LaunchPattern launches;
  KernelResult kernels;
  // By their starts, the first kMaxCollectives, and how many more there are.
  std::vector<Collective> collectives;
  int64_t collectives_beyond = 0;
  RankSteps steps;
  RankSyncs syncs;
  RankSequences sequences;  // if asked for
  // Of the first rank of a process, for all of them: LaunchJoin::shared_numbers.
  int64_t shared_numbers = 0;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(key);
    archive(extent);
    archive(left_out_ns);
    archive(gpu_ahead_ns);
    archive(timeline);
    archive(busy_windows_ns);
    archive.Require(busy_windows_ns.size() == kWindows);
    archive(host_gaps);
    archive(loader);
    archive(full_queue);
    archive(blocking_sets);
    archive(queue);
    archive(launches);
    archive(kernels);
    archive(collectives);
    archive(collectives_beyond);
    archive.Require(collectives_beyond >= 0);
    archive(steps);
    archive(syncs);
    archive(sequences);
    archive(shared_numbers);
    archive.Require(shared_numbers >= 0);
  }
};

// Two hours of steps with 100 collectives, one a second and a half; 2 MiB a rank.
inline constexpr size_t kMaxCollectives = 65'536;

struct FollowOptions {
  CommunicationKernels communication;
  std::string steps;  // how the names of the ranges begin that are steps; empty: found
  bool sequences = false;
};

// Builds the timelines of a finished state with several threads, a process by one of them at a time or, if
// there are twice as many threads as processes, by two. Results are ordered by process and device. Errors:
// those of temporary files.
Result<std::vector<RankResult>> FollowProcesses(const TraceState& state, int threads,
                                                const FollowOptions& options = {});
// Like above, for some processes, by number.
Result<std::vector<RankResult>> FollowProcesses(const TraceState& state, std::span<const size_t> processes,
                                                int threads, const FollowOptions& options);

}  // namespace gpusonde::analyze
