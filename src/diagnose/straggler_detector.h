// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/collective_groups.h"

namespace gpusonde::diagnose {

// A rank for which the others wait in most of their collectives.
struct CollectiveStraggler {
  std::string communicator, name;
  std::string operation;  // in which most is lost
  CollectiveRank rank;
  int32_t ranks = 0;
  int64_t from_ns = 0, until_ns = 0;   // the time looked at
  int64_t collectives = 0, last = 0;   // that all ranks ended; in how many of them it came last
  double waited_ns = 0;                // by the others in one of these, mean
  double share = 0, share_before = 0;  // of the time that they waited; before: usually
};

// A collective that has ended on all ranks.
struct EndedCollective {
  int64_t end_ns = 0;
  int32_t last_rank = 0;  // that came last
  double waited_ns = 0;   // by the others, mean
  std::string operation;
};

// Finds whom the ranks of each communicator waited for in the last seconds, if it is one rank, and if it is
// more than usual. Not thread-safe.
class StragglerDetector {
 public:
  // Call once a second: it learns what is usual.
  std::vector<CollectiveStraggler> Find(const CollectiveGroups& groups, int64_t now_ns);

 private:
  // What is remembered of a communicator.
  struct History {
    std::map<std::string, int64_t> judged;  // by operation: the newest sequence number
    std::deque<EndedCollective> ended;
    std::deque<double> usual;  // share of the time that ranks waited, each second without a straggler
    bool has_straggler = false;
  };

  static void JudgeEnded(const CollectiveGroup& group, int64_t now_ns, History& history);
  static std::optional<CollectiveStraggler> FindIn(const CollectiveGroup& group, int64_t until_ns,
                                                   History& history);

  std::map<std::string, History> histories_;  // by communicator
};

}  // namespace gpusonde::diagnose
