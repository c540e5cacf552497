// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "model/tables/collectives.h"
#include "model/tables/communicators.h"

namespace gpusonde::diagnose {

// A rank of a communicator, as far as this machine's rows show it.
struct CollectiveRank {
  int32_t rank = 0;
  Id128 process;
  int32_t tid = 0;                       // that called its newest collective; 0 before the first
  std::optional<std::string> last_call;  // "AllReduce #41"
  int64_t last_called_ns = 0;
};

// One rank's part in a collective. Times are ns since the epoch, 0 where not known; a recording's may lie
// after `now_ns`: then it has not happened yet.
struct CollectiveCall {
  int64_t called_ns = 0, begin_ns = 0, end_ns = 0;
  int64_t gpu_ns = 0;  // for which its kernel ran

  bool HasBegun(int64_t now_ns) const { return begin_ns != 0 && begin_ns <= now_ns; }
  bool HasEnded(int64_t now_ns) const { return end_ns != 0 && end_ns <= now_ns; }
};

// What is known of a rank: when it was in its communicator, and its newest calls.
struct CollectiveMember {
  using Calls = std::map<int64_t, CollectiveCall>;  // by sequence number

  Id128 process;
  int64_t joined_ns = 0, left_ns = INT64_MAX;
  int32_t tid = 0;
  std::map<std::string, Calls> calls;  // by operation
  std::string last_operation;
  int64_t last_sequence = 0, last_called_ns = 0;

  bool IsIn(int64_t now_ns) const { return joined_ns <= now_ns && now_ns < left_ns; }
  // Null if the call is not known.
  const CollectiveCall* Find(const std::string& operation, int64_t sequence) const;
};

// A communicator.
struct CollectiveGroup {
  std::string name;
  std::optional<int32_t> ranks;                 // if NCCL says how many it has
  std::map<int32_t, CollectiveMember> members;  // by rank; those on this machine
};

// Collects the collectives of ranks on this machine by communicator, operation and sequence number, by which
// the calls of different ranks belong together. Memory is bounded. Not thread-safe.
class CollectiveGroups {
 public:
  void Ingest(const model::Communicator& row);
  void Ingest(const model::Collective& row);
  // Forgets communicators that all ranks have left, or whose processes have all ended.
  void Forget(int64_t now_ns, const std::function<bool(const Id128& process)>& has_ended);

  // The processes that have joined a communicator.
  std::vector<Id128> Processes() const;
  const std::map<std::string, CollectiveGroup>& by_communicator() const { return groups_; }

 private:
  std::map<std::string, CollectiveGroup> groups_;
};

CollectiveRank Describe(int32_t rank, const CollectiveMember& member);

}  // namespace gpusonde::diagnose
