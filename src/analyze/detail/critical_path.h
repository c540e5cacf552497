// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyze/detail/detail_state.h"
#include "analyze/rank_table.h"
#include "analyze/timeline/process_timeline.h"
#include "base/result.h"

namespace gpusonde::analyze {

// What a stretch of a critical path was spent on.
enum class PathKind : uint8_t {
  kCompute,        // a kernel
  kCommunication,  // a kernel that communicates
  kTransfer,       // a copy or set
  kGraph,          // a CUDA graph that was traced as a whole
  kLaunch,         // from the return of a launching call to the start on the device
  kGap,            // between work of a stream that was launched in time
  kStreamWait,     // from the end of another stream's work
  kCall,           // the host in a CUDA call
  kOperator,       // the host in an operator or range
  kHost,           // the host outside of those
  kSync,           // from the end of work to the return of the call that waited for it
  kRankWait,       // communication before the last rank came: findings/rank_waits.cpp
  kUnknown,        // the trace doesn't say
};

// A critical path through one step: going back from the first work of the next step (of the last step: from
// its last end), always to what the work waited for last. Stretches cover the step's time on the device, each
// ns once. By the GPU's clock.
struct CriticalPath {
  static constexpr size_t kMaxParts = 64;              // the largest; others have no name
  static constexpr size_t kMaxCommunication = 16'384;  // the first

  struct Part {
    PathKind kind = PathKind::kUnknown;
    std::string name;  // of kernels, calls, operators
    int64_t count = 0;
    int64_t total_ns = 0;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(kind);
      archive(name);
      archive(count);
      archive(total_ns);
      archive.Require(kind <= PathKind::kUnknown);
    }
  };
  // A communication kernel on the path.
  struct Communication {
    int64_t start_ns = 0;  // of the kernel
    int64_t part_ns = 0;   // of it that is on the path

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(start_ns);
      archive(part_ns);
    }
  };

  RankKey rank;
  int64_t number = 0;  // of the step
  bool slow = false;   // else the typical one, of median duration
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<Part> parts;  // largest first
  std::vector<Communication> communication;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(rank);
    archive(number);
    archive(slow);
    archive(begin_ns);
    archive(end_ns);
    archive(parts);
    archive(communication);
  }
};

// The critical paths of the typical and up to three slow steps of each rank that has steps. Steps of more
// than 500,000 events or spans have none, nor have ranks beyond the first 64. Errors: those of temporary
// files.
Result<std::vector<CriticalPath>> FindCriticalPaths(const DetailState& trace, const FollowOptions& options);

}  // namespace gpusonde::analyze
