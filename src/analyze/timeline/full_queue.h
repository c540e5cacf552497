// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/records.h"
#include "analyze/timeline/host_gaps.h"

namespace gpusonde::analyze {

// How long launches were blocked because the queue of their stream was full.
struct FullQueue {
  static constexpr size_t kLongest = 3;

  int64_t count = 0;  // calls
  int64_t blocked_ns = 0;
  std::vector<Gap> longest;  // of these calls, at most kLongest, longest first

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count);
    archive(blocked_ns);
    archive(longest);
    for (const Gap& gap : longest) archive.Require(gap.begin_ns < gap.end_ns);
  }
};

// Finds them along a rank's timeline. A stream starts work in the order of its launches, so when a call
// begins, the queue is full if the launch kFullQueue places before it on the stream starts only later.
class FullQueueFollower {
 public:
  // CUDA queues 1,024 launches for a stream, as HTA assumes; in hta_diff_test of the shared traces 1,012
  // wait. Some, such as events, aren't in a trace.
  static constexpr size_t kFullQueue = 1'000;
  // A launch takes the host 2 to 10 µs; a longer one has been blocked.
  static constexpr int64_t kBlockedNs = 20'000;

  // An event, by start time.
  void Add(const LaunchedRecord& record) {
    if (record.has_call == 0) return;
    Stream* const stream = StreamOf(record.gpu.stream);
    // What a call launches after its first event, as a graph's, has no place of its own in the queue.
    if (stream == nullptr || (stream->count > 0 && stream->last_call_ns == record.call_start_ns)) return;
    int64_t& place = stream->starts_ns[stream->count++ % kFullQueue];
    const int64_t earlier_ns = std::exchange(place, record.gpu.start_ns);
    stream->last_call_ns = record.call_start_ns;
    if (stream->count <= kFullQueue || earlier_ns <= record.call_start_ns) return;
    if (record.call_end_ns - record.call_start_ns >= kBlockedNs && importers::IsNamed(record.gpu.work))
      AddBlocked({.begin_ns = record.call_start_ns, .end_ns = record.call_end_ns});
  }
  FullQueue Finish() &&;

 private:
  static constexpr size_t kMaxStreams = 1'024;  // 8 MiB a rank; further ones aren't followed

  struct Stream {
    size_t count = 0;
    int64_t last_call_ns = 0;
    std::array<int64_t, kFullQueue> starts_ns{};  // of the last events, in a ring
  };
  // Null if there are too many.
  Stream* StreamOf(uint32_t stream) {
    if (last_ == nullptr || last_stream_ != stream) {
      last_ = Find(stream);
      last_stream_ = stream;
    }
    return last_;
  }
  Stream* Find(uint32_t stream);
  void AddBlocked(const Gap& call);

  std::unordered_map<uint32_t, Stream> streams_;  // whose elements keep their places
  Stream* last_ = nullptr;
  uint32_t last_stream_ = 0;
  FullQueue result_;
};

}  // namespace gpusonde::analyze
