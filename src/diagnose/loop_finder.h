// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "diagnose/work.h"

namespace gpusonde::diagnose {

// A stream of a process, in which its work runs in order.
struct Stream {
  Id128 device;
  int64_t context = 0;
  int64_t stream = 0;  // negative: none, as of a wait for all streams

  auto operator<=>(const Stream&) const = default;
};

// A loop of a process: the threads that run it, and the streams of its work.
struct Loop {
  std::set<int32_t> threads;
  std::set<Stream> streams;
};

// Whether a process runs several loops at a time, each in threads and on streams of its own, as a learner and
// its actors do, or a server of several models. Each of them has steps of its own. Threads that do the same
// work are one loop, as those of a server's pool; so are those that keep pace, as the stages of a pipeline.
// Looks at the work of a few seconds. Times are ns since the epoch. Not thread-safe.
class LoopFinder {
 public:
  // A thread made this call; most calls are only sampled. Correlation ids are unique within a session.
  void IngestCall(int32_t session, int64_t correlation, int32_t tid);

  // Pieces of work on a stream that differ by their times and correlation ids only, in any order. Of waits,
  // only those for the stream itself. The times in `work` are not read.
  void Ingest(const Stream& on, const Work& work, std::span<const WorkTime> times, int32_t session,
              std::span<const int64_t> correlations);

  // Returns the loops that differ, that of the lowest thread id first; none if there are fewer than two, as
  // there is only one thread that waits for streams with kernels on them, say. Nullopt while more work may
  // show some: loops need eight waits after kernels. A stream of which no call was sampled is in none.
  std::optional<std::vector<Loop>> Find() const;
  // No work follows: loops with four waits are enough.
  std::vector<Loop> FindAtEnd() const;

 private:
  struct Piece {
    int64_t end_ns;
    uint32_t stream;  // index into streams_
    Work::Kind kind;
    uint64_t name;  // a hash
    uint64_t what;  // a hash of name and shape
    int32_t session;
    int64_t correlation;
  };
  struct Group;

  uint32_t IndexOf(const Stream& stream);
  std::set<uint32_t> AwaitedStreams() const;
  std::vector<Group> GroupByThread() const;
  void DescribeRounds(std::vector<Group>& groups) const;
  static std::vector<Loop> Differing(std::vector<Group> groups, size_t min_rounds);

  std::map<Stream, uint32_t> streams_;
  std::map<std::pair<int32_t, int64_t>, int32_t> threads_;  // by session and correlation
  std::vector<Piece> pieces_;
};

}  // namespace gpusonde::diagnose
