// SPDX-License-Identifier: Apache-2.0
#include "agent/silent_processes.h"

#include <utility>

#include "agent/polled_sum.h"
#include "base/time.h"
#include "model/metric_catalogue.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

using model::Metric;

constexpr int64_t kSilentNs = 2 * kNanosPerSecond;
constexpr int64_t kReadEveryNs = kNanosPerSecond;
constexpr size_t kMaxFollowed = 4096;  // further processes are not followed
constexpr int kMaxRead = 64;           // a reading costs some 10 µs

std::optional<Metric> StateOf(const proc::ProcessInfo& info, bool stops_known) {
  if (proc::IsStopped(info)) return stops_known ? std::nullopt : std::optional(Metric::kProcessStopped);
  return info.state == 'D' ? std::optional(Metric::kProcessBlocked) : std::nullopt;
}

}  // namespace

void SilentProcesses::Heard(int32_t pid, int64_t now_ns) {
  if (const auto known = heard_ns_.find(pid); known != heard_ns_.end())
    known->second = now_ns;
  else if (heard_ns_.size() < kMaxFollowed)
    heard_ns_.emplace(pid, now_ns);
}

void SilentProcesses::Write(const Id128& source, int64_t epoch_offset_ns, int64_t now_ns,
                            const std::function<std::optional<Id128>(int32_t pid)>& identify,
                            const std::function<bool(int32_t pid)>& stops_known,
                            model::BatchBuilder<decltype(model::kSignals)>& rows) {
  if (now_ns - read_ns_ < kReadEveryNs) return;
  const int64_t since_ns = std::exchange(read_ns_, now_ns);
  if (since_ns == 0) return;
  int left = kMaxRead;
  std::erase_if(heard_ns_, [&](const auto& each) {
    const auto& [pid, heard_ns] = each;
    if (now_ns - heard_ns < kSilentNs || left == 0) return false;
    --left;
    const Result<proc::ProcessInfo> info = proc::ReadProcessStat(pid);
    if (!info.has_value()) return true;  // it has ended
    const std::optional<Metric> state = StateOf(*info, stops_known(pid));
    const std::optional<Id128> process = state.has_value() ? identify(pid) : std::nullopt;
    if (process.has_value())
      rows.Append(PolledSum(source, {since_ns + epoch_offset_ns, now_ns + epoch_offset_ns}, *state, process,
                            now_ns - since_ns));
    return false;
  });
}

}  // namespace gpusonde::agent
