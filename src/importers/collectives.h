// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "importers/event.h"
#include "importers/trace.h"

namespace gpusonde::importers {

// The larger of what a rank puts in and gets out (Message::bytes), of what NCCL counts for each rank of a
// group. 0 if it isn't known, as of an unknown operation or number of ranks, or beyond Message::kMaxBytes.
int64_t WholeMessage(Operation operation, int64_t bytes, int64_t ranks);

// A rank's part in a collective, as the communication library itself reported it.
struct ReportedCollective {
  uint64_t group = 0;  // of ReportedCollectives::groups
  Operation operation = Operation::kUnknown;
  int64_t sequence = 0;  // of the operation in the group, the same on all ranks
  int64_t rank = 0;      // within the group
  int64_t time_ns = 0;   // from when the rank came until it left; not negative
  int64_t bytes = 0;     // WholeMessage, not 0

  auto operator<=>(const ReportedCollective&) const = default;
  template <class Archive>
  void Transfer(Archive& archive) {
    archive(group);
    archive(operation);
    archive(sequence);
    archive(rank);
    archive(time_ns);
    archive(bytes);
    archive.Require(operation <= Operation::kSendReceive && time_ns >= 0 && time_ns <= kMaxTimeNs &&
                    bytes > 0 && bytes <= Message::kMaxBytes);
  }
};

// What the ranks of a trace reported.
struct ReportedCollectives {
  static constexpr size_t kMaxCollectives = 262'144;  // 12 MiB

  struct Group {
    int64_t ranks = 0;  // 0 if unknown
    std::string label;  // at most ProcessGroup::kMaxLabelBytes

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(ranks);
      archive(label);
      archive.Require(ranks >= 0 && label.size() <= ProcessGroup::kMaxLabelBytes);
    }
  };

  std::map<uint64_t, Group> groups;  // by a hash, the same in the traces of all ranks
  std::vector<ReportedCollective> ended;
  int64_t invalid = 0;       // without a size or a time that is possible
  int64_t beyond_bound = 0;  // that were called after the first kMaxCollectives
  int64_t lost = 0;          // that the library's plugin had no room for

  // Adds those of another trace of the job.
  void Merge(const ReportedCollectives& other);

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(groups);
    archive(ended);
    archive(invalid);
    archive(beyond_bound);
    archive(lost);
  }
};

// Those of a recording, which NCCL's profiler plugin reported; nothing of other formats. Errors: those of
// opening a recording and of Store::Query.
Result<ReportedCollectives> ReadReportedCollectives(const std::string& path, TraceFormat format);

}  // namespace gpusonde::importers
