// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/process_timeline.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

namespace gpusonde::analyze {
namespace {

// What is known of kernels' names, by their numbers.
struct Names {
  explicit Names(const NameTable& names) : hashes(names.Hashes()) {
    for (uint32_t i = 0; i < names.size(); ++i) is_communication.push_back(IsCommunication(names[i]));
  }
  std::vector<uint64_t> hashes;
  std::vector<bool> is_communication;
};

// Follows one rank.
class RankFollower {
 public:
  RankFollower(const RankKey& key, const Extent& extent, const Names& names)
      : names_(names),
        result_{.key = key, .extent = extent},
        kernels_(names.hashes, extent.first_ns, extent.last_ns) {}

  void Add(const LaunchedRecord& record) {
    const GpuRecord& event = record.gpu;
    const bool is_kernel = event.work == importers::GpuWork::kKernel;
    const bool is_communication = is_kernel && names_.is_communication[event.name];
    result_.timeline.Add(record, is_communication);
    if (record.has_call != 0) result_.queue.Leave(event.start_ns);
    if (is_kernel)
      kernels_.Kernel(event, is_communication);
    else if (event.work == importers::GpuWork::kMemcpy)
      kernels_.Copy(event);
    else
      kernels_.Other(event);
    if (is_communication && result_.collectives.size() < kMaxCollectives)
      result_.collectives.push_back({event.name, event.start_ns, event.end_ns});
  }
  void Join(int64_t time_ns) { result_.queue.Join(time_ns); }

  RankResult Finish() && {
    result_.kernels = kernels_.Finish();
    return std::move(result_);
  }

 private:
  const Names& names_;
  RankResult result_;
  KernelStrata kernels_;
};

// The ranks of one process, by number.
class ProcessFollower {
 public:
  ProcessFollower(const RankTable& ranks, const std::map<uint16_t, Extent>& extents, const Names& names) {
    for (const auto& [rank, extent] : extents)
      followers_.try_emplace(rank, ranks.ranks()[rank], extent, names);
  }

  RankFollower& operator[](uint16_t rank) {
    if (last_ == nullptr || last_rank_ != rank) {
      last_rank_ = rank;
      last_ = &followers_.at(rank);
    }
    return *last_;
  }
  std::vector<RankResult> Finish() && {
    std::vector<RankResult> results;
    for (auto& [rank, follower] : followers_) results.push_back(std::move(follower).Finish());
    return results;
  }

 private:
  std::map<uint16_t, RankFollower> followers_;
  RankFollower* last_ = nullptr;
  uint16_t last_rank_ = 0;
};

Result<std::vector<RankResult>> FollowProcess(const TraceState& state, size_t process, const Names& names) {
  ASSIGN_OR_RETURN(const Launches launches, JoinLaunches(state.processes()[process]));
  ProcessFollower ranks(state.ranks(), launches.extents, names);
  Merged<LaunchedRecord, ByStart> events(launches.events.runs());
  Merged<QueueEntry, ByTime> joining(launches.queue.runs());
  const QueueEntry* entry = joining.Next();
  while (const LaunchedRecord* event = events.Next()) {
    for (; entry != nullptr && entry->time_ns <= event->gpu.start_ns; entry = joining.Next())
      ranks[static_cast<uint16_t>(entry->rank)].Join(entry->time_ns);
    ranks[event->gpu.rank].Add(*event);
  }
  TRY(events.status());
  TRY(joining.status());
  return std::move(ranks).Finish();
}

}  // namespace

Result<std::vector<RankResult>> FollowProcesses(const TraceState& state, int threads) {
  std::vector<size_t> all(state.processes().size());
  std::iota(all.begin(), all.end(), size_t{0});
  return FollowProcesses(state, all, threads);
}

Result<std::vector<RankResult>> FollowProcesses(const TraceState& state, std::span<const size_t> processes,
                                                int threads) {
  const Names names(state.names());
  const size_t count = processes.size();
  std::vector<Result<std::vector<RankResult>>> results(count);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) results[i] = FollowProcess(state, processes[i], names);
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
