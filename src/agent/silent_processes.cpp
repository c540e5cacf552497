// SPDX-License-Identifier: Apache-2.0
#include "agent/silent_processes.h"

#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "agent/polled_sum.h"
#include "base/time.h"
#include "model/metric_catalogue.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

using model::Metric;

constexpr int64_t kSilentNs = 2 * kNanosPerSecond;
constexpr int64_t kReadEveryNs = kNanosPerSecond;
constexpr size_t kMaxFollowed = 4096;  // further threads are not followed
constexpr size_t kMaxRead = 64;        // a reading costs some 10 µs

std::optional<Metric> MetricOf(char state) {
  if (proc::IsStopped(state)) return Metric::kProcessStopped;
  return state == 'D' ? std::optional(Metric::kProcessBlocked) : std::nullopt;
}

}  // namespace

void SilentProcesses::NoteActivity(int32_t pid, int32_t tid, int64_t now_ns) {
  Threads& threads = (tid == pid ? first_ : others_).threads;
  const Thread thread{pid, tid};
  if (const auto known = threads.find(thread); known != threads.end())
    known->second = {.active_ns = now_ns};
  else if (threads.size() < kMaxFollowed)
    threads.emplace(thread, State{.active_ns = now_ns});
}

// Chooses the silent threads to read, and where the next turn begins.
std::vector<SilentProcesses::Thread> SilentProcesses::NextOf(Turn& turn, int64_t now_ns) {
  std::vector<Thread> chosen;
  const auto choose = [&](const auto& first, const auto& last, bool halted) {
    for (auto each = first; each != last && chosen.size() < kMaxRead; ++each)
      if (each->second.is_halted == halted && now_ns - each->second.active_ns >= kSilentNs)
        chosen.push_back(each->first);
  };
  const auto next = turn.threads.upper_bound(turn.last);
  choose(turn.threads.begin(), turn.threads.end(), true);
  const size_t halted = chosen.size();
  choose(next, turn.threads.end(), false);
  choose(turn.threads.begin(), next, false);
  if (chosen.size() > halted) turn.last = chosen.back();
  return chosen;
}

void SilentProcesses::Write(const Id128& source, int64_t epoch_offset_ns, int64_t now_ns,
                            const std::function<std::optional<Id128>(int32_t pid)>& identify,
                            const std::function<bool(int32_t pid)>& stops_known,
                            model::BatchBuilder<decltype(model::kSignals)>& rows) {
  if (now_ns - read_ns_ < kReadEveryNs) return;
  const int64_t since_ns = std::exchange(read_ns_, now_ns);
  if (since_ns == 0) return;
  std::set<std::pair<int32_t, Metric>> found;  // of each process once, however many threads
  for (Turn* turn : {&first_, &others_})
    for (const Thread& thread : NextOf(*turn, now_ns)) {
      const std::optional<char> state = proc::ReadThreadState(thread.pid, thread.tid);
      if (!state.has_value()) {
        turn->threads.erase(thread);  // it has ended
        continue;
      }
      const std::optional<Metric> metric = MetricOf(*state);
      turn->threads[thread].is_halted = metric.has_value();
      if (metric.has_value()) found.emplace(thread.pid, *metric);
    }
  for (const auto& [pid, metric] : found) {
    if (metric == Metric::kProcessStopped && stops_known(pid)) continue;
    if (const std::optional<Id128> process = identify(pid); process.has_value())
      rows.Append(PolledSum(source, {since_ns + epoch_offset_ns, now_ns + epoch_offset_ns}, metric, process,
                            now_ns - since_ns));
  }
}

}  // namespace gpusonde::agent
