// SPDX-License-Identifier: Apache-2.0
#include "agent/signal_rows.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/metric_catalogue.h"

namespace gpusonde::agent {
namespace {

constexpr int64_t kBucketNs = GPUSONDE_SIGNAL_BUCKET_NS;
// Up to this many empty buckets are cheaper than another row.
constexpr int64_t kMaxEmpty = 16;

model::Metric MetricOf(gpusonde_signal signal) {
  using enum model::Metric;
  constexpr model::Metric kMetrics[GPUSONDE_SIGNALS] = {
      kThreadRunning,  kThreadRunQueue, kThreadBlockedIo,   kThreadBlocked, kThreadWaiting,
      kThreadSleeping, kThreadNetwork,  kThreadInterrupted, kThreadReclaim, kThreadDisplaced,
      kThreadStopped,  kNetworkQueued,  kDiskBytes,         kNetworkBytes,  kNetworkRetransmits};
  return kMetrics[signal];
}

// What the buckets of a row have in common: pid, tid, other and signal.
auto KeyOf(const ebpf::SignalSum& sum) { return std::tuple(sum.pid, sum.tid, sum.other, sum.signal); }

}  // namespace

void SignalRows::Ingest(const ebpf::SignalSum& sum) {
  if (sum.signal < GPUSONDE_SIGNALS) sums_.push_back(sum);
}

void SignalRows::Write(const Id128& source, int64_t epoch_offset_ns,
                       const std::function<std::optional<Id128>(int32_t pid)>& identify,
                       model::BatchBuilder<decltype(model::kSignals)>& rows) {
  std::ranges::sort(sums_, {},
                    [](const ebpf::SignalSum& sum) { return std::pair(KeyOf(sum), sum.start_ns); });
  for (auto first = sums_.cbegin(); first != sums_.cend();) {
    const auto last = std::find_if(first, sums_.cend(),
                                   [key = KeyOf(*first)](const auto& sum) { return KeyOf(sum) != key; });
    const std::span buckets(first, last);
    first = last;
    const auto& [pid, tid, other, signal] = KeyOf(buckets.front());
    const std::optional<Id128> process = identify(pid);
    if (!process.has_value()) continue;
    model::Signal row{.bucket_ns = kBucketNs,
                      .source = source,
                      .metric = std::string(model::InfoOf(MetricOf(signal)).name),
                      .process = process,
                      .tid = tid == 0 ? std::nullopt : std::optional(tid),
                      .other = other == 0 ? std::nullopt : identify(other),
                      .values = {}};
    int64_t last_ns = 0;
    for (const ebpf::SignalSum& sum : buckets) {
      if (!row.values.empty() && sum.start_ns == last_ns) {
        row.values.back() += sum.amount;
        continue;
      }
      int64_t empty = (sum.start_ns - last_ns) / kBucketNs - 1;
      if (!row.values.empty() && empty > kMaxEmpty) {
        rows.Append(row);
        row.values.clear();
      }
      if (row.values.empty()) {
        row.start_ns = sum.start_ns + epoch_offset_ns;
        empty = 0;
      }
      row.values.insert(row.values.end(), static_cast<size_t>(empty), 0);
      row.values.push_back(sum.amount);
      last_ns = sum.start_ns;
    }
    rows.Append(row);
  }
  sums_.clear();
}

}  // namespace gpusonde::agent
