// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
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

// A collective that some ranks have been in for long while others have not called it, or have not begun it.
struct CollectiveHang {
  std::string communicator, name;
  std::string operation;
  int64_t sequence = 0;
  int64_t since_ns = 0;  // since when the first rank has waited
  int32_t ranks = 0;     // of the communicator; those on this machine if NCCL doesn't say
  std::vector<CollectiveRank> waiting;
  std::vector<CollectiveRank> missing;  // have not called it, and wait in no other
  std::vector<CollectiveRank>
      gpu_behind;         // have called it, but their GPU has not begun it, while others' have
  int32_t elsewhere = 0;  // ranks of which nothing is known here
};

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

// Matches the collectives of ranks on this machine by communicator, operation and sequence number. Rows may
// tell of times after `now_ns` (a recording's): such a begin or end has not happened yet. Memory is bounded.
// Not thread-safe.
class CollectiveMatch {
 public:
  void Ingest(const model::Communicator& row);
  void Ingest(const model::Collective& row);
  // Forgets communicators that all ranks have left, or whose processes have all ended.
  void Forget(int64_t now_ns, const std::function<bool(const Id128& process)>& has_ended);

  // The collectives that ranks have waited in for at least `hung_ns`, one a communicator, oldest first. A
  // rank that is missing in one because it waits in another is not blamed, unless all are.
  std::vector<CollectiveHang> Hangs(int64_t now_ns, int64_t hung_ns) const;

  // Whom the ranks of each communicator waited for in the last seconds, if it is one rank and if it is more
  // than usual. Call once a second: it learns what is usual.
  std::vector<CollectiveStraggler> Stragglers(int64_t now_ns);

  // The processes that have joined a communicator.
  std::vector<Id128> Processes() const;

 private:
  // A collective of one rank. Times are 0 where not known.
  struct Call {
    int64_t called_ns = 0, begin_ns = 0, end_ns = 0, gpu_ns = 0;
  };
  using Sequences = std::map<int64_t, Call>;
  struct Member {
    Id128 process;
    int64_t joined_ns = 0, left_ns = INT64_MAX;
    int32_t tid = 0;
    std::map<std::string, Sequences> calls;  // by operation; the newest
    std::string last_operation;
    int64_t last_sequence = 0, last_called_ns = 0;
  };
  struct Group {
    std::string name;
    std::optional<int32_t> ranks;
    std::map<int32_t, Member> members;  // by rank
    std::map<std::string, int64_t>
        judged;  // by operation: the newest sequence number that was added to `waits`
    struct Wait {
      int64_t time_ns = 0;
      int32_t rank = 0;  // that came last
      double waited_ns = 0;
      std::string operation;
    };
    std::deque<Wait> waits;
    std::deque<double> usual;  // share of the time, each second without a straggler
    bool open = false;
  };

  static CollectiveRank Describe(int32_t rank, const Member& member);
  static bool IsIn(const Member& member, int64_t now_ns) {
    return member.joined_ns <= now_ns && now_ns < member.left_ns;
  }
  static std::optional<CollectiveHang> HangOf(const std::string& communicator, const Group& group,
                                              int64_t now_ns, int64_t hung_ns);
  static void JudgeEnded(Group& group, int64_t now_ns);

  std::map<std::string, Group> groups_;  // by communicator
};

}  // namespace gpusonde::diagnose
