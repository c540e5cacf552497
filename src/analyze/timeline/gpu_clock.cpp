// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/gpu_clock.h"

#include <vector>

#include "analyze/sorted_runs.h"
#include "base/order_statistics.h"
#include "base/time.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kMaxBehindNs = 100'000;
constexpr int64_t kMaxAheadNs = kNanosPerSecond;
// 8 MiB; the clocks of a session are a constant time apart.
constexpr size_t kMaxLaunches = size_t{1} << 20;

}  // namespace

Result<int64_t> EstimateGpuClock(const ProcessRecords& process) {
  Merged<GpuRecord, ByCorrelation, Renumbering> events(process.gpu.runs());
  Merged<CallRecord, ByCorrelation, Renumbering> calls(process.calls.runs());
  std::vector<int64_t> from_call_ns;
  const CallRecord* call = calls.Next();
  // Events without a correlation id come last.
  for (const GpuRecord* event = events.Next(); event != nullptr && event->has_correlation != 0;
       event = events.Next()) {
    while (call != nullptr && call->correlation < event->correlation) call = calls.Next();
    if (call == nullptr || from_call_ns.size() == kMaxLaunches) break;
    if (call->correlation == event->correlation) from_call_ns.push_back(event->start_ns - call->start_ns);
  }
  TRY(events.status());
  TRY(calls.status());
  if (from_call_ns.empty()) return 0;
  const int64_t first = ValueOfRank(from_call_ns, (from_call_ns.size() - 1) / 100);
  return first < -kMaxBehindNs || first > kMaxAheadNs ? first : 0;
}

}  // namespace gpusonde::analyze
