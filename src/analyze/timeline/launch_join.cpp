// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/launch_join.h"

#include <algorithm>
#include <vector>

#include "base/time.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kMaxDistanceNs = 60 * kNanosPerSecond;

// The calls of one correlation id, which are few: one for each process, as a rule.
class Calls {
 public:
  explicit Calls(const CallRuns& runs) : merged_(runs.runs()), next_(merged_.Next()) {}

  // Moves on to an id; ids come rising.
  void Seek(uint32_t correlation) {
    if (!calls_.empty() && calls_.front().correlation == correlation) return;
    calls_.clear();
    while (next_ != nullptr && next_->correlation < correlation) next_ = merged_.Next();
    for (; next_ != nullptr && next_->correlation == correlation; next_ = merged_.Next()) calls_.push_back(*next_);
  }

  // They are in order of their starts.
  const CallRecord* Find(uint16_t process, int64_t start_ns) const {
    const CallRecord* best = nullptr;
    for (const CallRecord& call : calls_) {
      if (call.process != process) continue;
      if (best != nullptr && call.start_ns > start_ns) break;
      best = &call;
    }
    if (best == nullptr) return nullptr;
    const int64_t distance_ns = start_ns - best->start_ns;
    return distance_ns > kMaxDistanceNs || distance_ns < -kMaxDistanceNs ? nullptr : best;
  }

  const Status& status() const { return merged_.status(); }

 private:
  Merged<CallRecord, ByCorrelation, Renumbering> merged_;
  const CallRecord* next_;
  std::vector<CallRecord> calls_;
};

// The process of each rank, as call records number them.
std::vector<uint16_t> ProcessOfRanks(const RankTable& table) {
  std::vector<uint16_t> processes;
  for (const RankKey& rank : table.ranks()) {
    const auto found = std::ranges::find(table.processes(), rank.process);
    processes.push_back(static_cast<uint16_t>(found - table.processes().begin()));
  }
  return processes;
}

}  // namespace

Status JoinLaunches(const TraceState& state, LaunchedRuns& launched, QueueRuns& queue) {
  const std::vector<uint16_t> processes = ProcessOfRanks(state.ranks());
  Calls calls(state.call_runs());
  Merged<GpuRecord, ByCorrelation, Renumbering> events(state.gpu_runs().runs());
  while (const GpuRecord* event = events.Next()) {
    LaunchedRecord record{.gpu = *event};
    const CallRecord* call = nullptr;
    if (event->has_correlation) {
      calls.Seek(event->correlation);
      call = calls.Find(processes[event->rank], event->start_ns);
    }
    if (call != nullptr) {
      record.has_call = true;
      record.call_start_ns = call->start_ns;
      record.call_end_ns = call->end_ns;
      queue.Add({.time_ns = std::min(call->start_ns, event->start_ns), .rank = event->rank, .change = 1});
      queue.Add({.time_ns = event->start_ns, .rank = event->rank, .change = -1});
    }
    launched.Add(record);
  }
  TRY(events.status());
  TRY(calls.status());
  TRY(launched.Finish());
  return queue.Finish();
}

}  // namespace gpusonde::analyze
