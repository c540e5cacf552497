// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/process_timeline.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "analyze/timeline/launch_join.h"

namespace gpusonde::analyze {
namespace {

// By a kernel's number: whether it is communication.
std::vector<bool> FindCommunication(const NameTable& names) {
  std::vector<bool> found(names.size());
  for (uint32_t i = 0; i < names.size(); ++i) found[i] = IsCommunication(names[i]);
  return found;
}

// The results of a process's devices, by rank number.
class Results {
 public:
  explicit Results(const RankTable& ranks) : ranks_(ranks) {}

  RankResult& operator[](uint16_t rank) {
    if (last_ == nullptr || last_rank_ != rank) {
      last_rank_ = rank;
      last_ = &results_.try_emplace(rank, RankResult{.key = ranks_.ranks()[rank]}).first->second;
    }
    return *last_;
  }
  std::vector<RankResult> Take() && {
    std::vector<RankResult> all;
    for (auto& [rank, result] : results_) all.push_back(std::move(result));
    return all;
  }

 private:
  const RankTable& ranks_;
  std::map<uint16_t, RankResult> results_;
  RankResult* last_ = nullptr;
  uint16_t last_rank_ = 0;
};

Result<std::vector<RankResult>> FollowProcess(const TraceState& state, size_t process,
                                              const std::vector<bool>& is_communication) {
  const auto file = std::make_shared<TemporaryFile>();
  LaunchedRuns launched(file);
  QueueRuns queue(file);
  TRY(JoinLaunches(state.processes()[process], launched, queue));
  Results results(state.ranks());
  Merged<LaunchedRecord, ByStart> events(launched.runs());
  while (const LaunchedRecord* event = events.Next()) {
    const bool is_kernel = event->gpu.work == importers::GpuWork::kKernel;
    results[event->gpu.rank].timeline.Add(*event, is_kernel && is_communication[event->gpu.name]);
  }
  TRY(events.status());
  Merged<QueueStep, ByTime> steps(queue.runs());
  while (const QueueStep* step = steps.Next()) results[static_cast<uint16_t>(step->rank)].queue.Add(*step);
  TRY(steps.status());
  return std::move(results).Take();
}

}  // namespace

Result<std::vector<RankResult>> FollowProcesses(const TraceState& state, int threads) {
  const std::vector<bool> is_communication = FindCommunication(state.names());
  const size_t count = state.processes().size();
  std::vector<Result<std::vector<RankResult>>> results(count);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) results[i] = FollowProcess(state, i, is_communication);
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min(count, static_cast<size_t>(threads)); ++i) others.emplace_back(work);
    work();
  }
  std::vector<RankResult> all;
  for (Result<std::vector<RankResult>>& result : results) {
    if (!result.has_value()) return std::unexpected(std::move(result).error());
    std::ranges::move(*result, std::back_inserter(all));
  }
  std::ranges::sort(all, {}, &RankResult::key);
  return all;
}

}  // namespace gpusonde::analyze
