// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/process_timeline.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "analyze/reorder.h"
#include "analyze/sorted_runs.h"
#include "analyze/start_thread.h"
#include "analyze/timeline/gpu_clock.h"
#include "analyze/timeline/launch_join.h"
#include "importers/collectives.h"

namespace gpusonde::analyze {
namespace {

// How many joined events are buffered for reordering: several times the launches that wait on a busy GPU
// (1,024 per stream); half of it stays in the second-level cache.
constexpr size_t kReorderedRecords = (size_t{1} << 20) / sizeof(LaunchedRecord);

// Properties of kernel names, by number.
struct Names {
  Names(const TraceState& state, const CommunicationKernels& communication)
      : hashes(state.names().Hashes()), durations(state.kernels()) {
    const NameTable& names = state.names();
    for (uint32_t i = 0; i < names.size(); ++i)
      is_communication.push_back(!communication.LibraryOf(names[i]).empty());
    for (uint32_t i = 0; i < names.size() && names.has_dropped(); ++i)
      canonical.push_back(names.Canonical(i));
  }
  SyncNames Syncs() const { return {hashes, canonical}; }

  std::vector<uint64_t> hashes;
  std::span<const Durations> durations;
  std::vector<bool> is_communication;
  std::vector<uint32_t> canonical;  // empty if no name was dropped
};

// What ranges tell of a process, by the host's clock.
struct HostTimes {
  Steps steps;
  std::vector<TimeRange> loader;  // when it waited for its data loader
  CommunicatorLaunches communicators;
};

// Converts times of a result to the trace's clock. Gaps around what is left out aren't listed: they are
// shorter than their times would say.
void ToTraces(const ClockWithout& clock, RankResult& result) {
  for (std::vector<Gap>* const gaps :
       {&result.host_gaps.longest, &result.loader.longest, &result.full_queue.longest}) {
    for (Gap& gap : *gaps) gap = {clock.EndOf(gap.begin_ns), clock.StartOf(gap.end_ns)};
    std::erase_if(*gaps, [&clock](const Gap& gap) {
      return clock.Without(gap.end_ns) - clock.Without(gap.begin_ns) < gap.end_ns - gap.begin_ns;
    });
  }
  for (auto& [name, kernels] : result.kernels.names)
    for (SlowKernel& kernel : kernels.slowest) kernel.start_ns = clock.StartOf(kernel.start_ns);
  for (Window& window : result.kernels.windows) {
    window.begin_ns = clock.StartOf(window.begin_ns);
    window.end_ns = clock.EndOf(window.end_ns);
  }
  for (StepTimes& step : result.steps.steps) {
    step.start_ns = clock.StartOf(step.start_ns);
    if (step.gpu_begin_ns != 0) step.gpu_begin_ns = clock.StartOf(step.gpu_begin_ns);
  }
  for (KernelSequence& sequence : result.sequences.sequences)
    sequence.first_ns = clock.StartOf(sequence.first_ns);
}

// Builds the timeline of one rank.
class RankFollower {
 public:
  RankFollower(const RankKey& key, const Extent& extent, const Names& names, const HostTimes& host,
               const TraceState& state, std::span<const Run<SyncRecord, Renumbering>> syncs,
               int64_t gpu_ahead_ns, bool sequences)
      : names_(names),
        clock_(state.unrecorded().left_out),
        messages_(state.messages()),
        groups_(state.groups()),
        result_{.key = key, .extent = extent, .gpu_ahead_ns = gpu_ahead_ns},
        busy_(clock_.Without(extent.first_ns), clock_.Without(extent.last_ns)),
        kernels_(names.hashes, names.durations, clock_.Without(extent.first_ns),
                 clock_.Without(extent.last_ns)),
        steps_(host.steps, gpu_ahead_ns),
        loader_(host.loader, gpu_ahead_ns),
        syncs_(syncs, names.Syncs(), clock_, host.steps, gpu_ahead_ns),
        communicators_(host.communicators) {
    if (sequences) sequences_.emplace(names.hashes);
    result_.left_out_ns =
        extent.last_ns - extent.first_ns - (clock_.Without(extent.last_ns) - clock_.Without(extent.first_ns));
  }

  // By the trace's clock.
  void Add(const LaunchedRecord& record) {
    if (clock_.IsTraces()) return Add(record, record);
    LaunchedRecord without = record;
    for (int64_t* const time_ns :
         {&without.gpu.start_ns, &without.gpu.end_ns, &without.call_start_ns, &without.call_end_ns})
      *time_ns = clock_.Without(*time_ns);
    Add(without, record);
  }
  // Sums kernels; each event is added here too, possibly in another thread.
  void Sum(const GpuRecord& event) {
    if (clock_.IsTraces()) return SumKernel(event);
    GpuRecord without = event;
    without.start_ns = clock_.Without(event.start_ns);
    without.end_ns = clock_.Without(event.end_ns);
    SumKernel(without);
  }
  void Join(const QueueEntry& entry) {
    const int64_t time_ns = clock_.IsTraces() ? entry.time_ns : clock_.Without(entry.time_ns);
    if (entry.is_named != 0) launches_.Launch(entry.thread, time_ns, result_.queue.length());
    result_.queue.Join(time_ns);
  }

  // Errors: those of temporary files.
  Result<RankResult> Finish() && {
    result_.host_gaps.Finish();
    result_.busy_windows_ns = busy_.Finish();
    result_.kernels = kernels_.Finish();
    result_.steps = steps_.Finish(result_.timeline);
    result_.loader = std::move(loader_).Finish();
    result_.full_queue = std::move(full_queue_).Finish();
    result_.launches = std::move(launches_).Finish();
    ASSIGN_OR_RETURN(result_.syncs, std::move(syncs_).Finish(result_.timeline));
    if (sequences_.has_value()) result_.sequences = std::move(*sequences_).Finish();
    if (!clock_.IsTraces()) ToTraces(clock_, result_);
    return std::move(result_);
  }

 private:
  // A record by clock_, and by the trace's.
  void Add(const LaunchedRecord& record, const LaunchedRecord& traced) {
    const GpuRecord& event = record.gpu;
    const bool is_kernel = event.work == importers::GpuWork::kKernel;
    const bool is_communication = is_kernel && names_.is_communication[event.name];
    const RankTimeline& timeline = result_.timeline;
    if (timeline.events() > 0) {
      result_.host_gaps.Add(record, timeline.covered_to());
      loader_.Add(record, timeline.covered_to());
    }
    syncs_.Advance(event.start_ns, timeline);
    busy_.Add(event.start_ns, event.end_ns);
    steps_.Add(record, timeline);
    full_queue_.Add(record);
    if (sequences_.has_value()) sequences_->Add(event);
    result_.timeline.Add(record, is_communication);
    if (record.has_call != 0) {
      result_.queue.Leave(event.start_ns);
      if (importers::IsNamed(event.work))
        launches_.Start(record.thread, event.start_ns - record.call_start_ns);
    }
    if (event.work == importers::GpuWork::kMemset) result_.blocking_sets.Add(record);
    if (is_communication && result_.collectives.size() < kMaxCollectives)
      result_.collectives.push_back(CollectiveOf(traced));
    else if (is_communication)
      ++result_.collectives_beyond;
  }

  // By clock_.
  void SumKernel(const GpuRecord& event) {
    if (event.work == importers::GpuWork::kKernel)
      kernels_.Kernel(event, names_.is_communication[event.name]);
    else if (event.work == importers::GpuWork::kMemcpy)
      kernels_.Copy(event);
    else
      kernels_.Other(event);
  }

  // A communication kernel, with what its trace's events say of it, or what its thread called.
  Collective CollectiveOf(const LaunchedRecord& record) const {
    const GpuRecord& event = record.gpu;
    Collective collective{
        .name = event.name, .start_ns = event.start_ns, .end_ns = event.end_ns, .collective = event.bytes};
    const importers::Message* const message = messages_.Find({.start_ns = event.start_ns,
                                                              .end_ns = event.end_ns,
                                                              .process = result_.key.process,
                                                              .device = result_.key.device,
                                                              .stream = event.stream});
    if (message != nullptr) {
      collective.operation = message->operation;
      collective.bytes = message->bytes;
    }
    if (collective.collective != 0 || record.has_call == 0) return collective;
    const CommunicatorLaunches::Window* const call =
        communicators_.At(record.thread, record.call_start_ns - result_.gpu_ahead_ns);
    if (call == nullptr) return collective;
    collective.collective = importers::PackCollective(call->group, 0);
    collective.operation = call->operation;
    const auto known = groups_.find(call->group);
    collective.bytes = importers::WholeMessage(call->operation, call->bytes,
                                               known != groups_.end() ? known->second.group.size : 0);
    return collective;
  }

  const Names& names_;
  ClockWithout clock_;
  const MessageTable& messages_;
  const KnownGroups& groups_;
  RankResult result_;
  BusyWindows busy_;
  KernelStrata kernels_;
  StepFollower steps_;
  LoaderFollower loader_;
  FullQueueFollower full_queue_;
  LaunchFollower launches_;
  SyncFollower syncs_;
  std::optional<SequenceFollower> sequences_;
  const CommunicatorLaunches& communicators_;
};

// The ranks of one process, by number.
class ProcessFollower {
 public:
  ProcessFollower(const TraceState& state, const ProcessRecords& records, std::span<const uint16_t> ranks,
                  const Names& names, const HostTimes& host, int64_t gpu_ahead_ns, bool sequences)
      : names_(names) {
    for (const uint16_t rank : ranks)
      followers_.try_emplace(rank, state.ranks().ranks()[rank], state.extents()[rank], names, host, state,
                             records.syncs.runs(), gpu_ahead_ns, sequences);
  }

  // Add events by start time, and queue changes by time, before events of the same time.
  void Add(const LaunchedRecord& event) {
    RankFollower& rank = followed_.Of(event.gpu.rank, followers_);
    if (IsKept(event.gpu)) return rank.Add(event);
    LaunchedRecord kept = event;
    kept.gpu.name = names_.canonical[event.gpu.name];
    rank.Add(kept);
  }
  void Join(const QueueEntry& entry) { followed_.Of(entry.rank, followers_).Join(entry); }
  // Sums kernels, possibly in another thread than that of the others; add each event here too, likewise.
  void Sum(const GpuRecord& event) {
    RankFollower& rank = summed_.Of(event.rank, followers_);
    if (IsKept(event)) return rank.Sum(event);
    GpuRecord kept = event;
    kept.name = names_.canonical[event.name];
    rank.Sum(kept);
  }
  // Errors: those of temporary files.
  Result<std::vector<RankResult>> Finish() && {
    std::vector<RankResult> results;
    for (auto& [rank, follower] : followers_) {
      ASSIGN_OR_RETURN(RankResult result, std::move(follower).Finish());
      results.push_back(std::move(result));
    }
    return results;
  }

 private:
  using Followers = std::map<uint16_t, RankFollower>;

  // The rank that a thread used last.
  struct Recent {
    RankFollower* follower = nullptr;
    uint16_t rank = 0;

    RankFollower& Of(uint16_t wanted, Followers& followers) {
      if (follower == nullptr || rank != wanted) {
        rank = wanted;
        follower = &followers.at(wanted);
      }
      return *follower;
    }
  };

  // Whether its name is its own.
  bool IsKept(const GpuRecord& event) const {
    return names_.canonical.empty() || !importers::IsNamed(event.work);
  }

  const Names& names_;
  Followers followers_;
  Recent followed_, summed_;
};

QueueEntry EntryOf(const LaunchedRecord& record) {
  return {.time_ns = std::min(record.call_start_ns, record.gpu.start_ns),
          .thread = record.thread,
          .rank = record.gpu.rank,
          .is_named = static_cast<uint16_t>(importers::IsNamed(record.gpu.work) ? 1 : 0)};
}

// Follows events by start time, with the launches until the last of them.
void Follow(std::span<const LaunchedRecord> events, std::span<const QueueEntry> entries,
            ProcessFollower& ranks) {
  size_t joined = 0;
  for (const LaunchedRecord& event : events) {
    for (; joined < entries.size() && entries[joined].time_ns <= event.gpu.start_ns; ++joined)
      ranks.Join(entries[joined]);
    ranks.Add(event);
  }
}

// Follows the events that this thread joins, sorts and sums, which takes about as long, in another thread if
// one is wanted.
class FollowingThread {
 public:
  FollowingThread(ProcessFollower& ranks, bool is_wanted) : ranks_(ranks) {
    if (is_wanted) StartThread(thread_, [this] { Work(); });
  }
  FollowingThread(const FollowingThread&) = delete;
  FollowingThread& operator=(const FollowingThread&) = delete;
  ~FollowingThread() { Finish(); }

  // Events by start time, with the launches until the last of them.
  void Add(std::span<const LaunchedRecord> events, std::span<const QueueEntry> entries) {
    if (thread_.empty()) return Follow(events, entries, ranks_);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.size() < kMaxWaiting; });
    Batch batch;
    if (!used_.empty()) {
      batch = std::move(used_.back());
      used_.pop_back();
    }
    lock.unlock();
    batch.events.assign(events.begin(), events.end());
    batch.entries.assign(entries.begin(), entries.end());
    lock.lock();
    waiting_.push_back(std::move(batch));
    changed_.notify_all();
  }
  // Returns once all events are followed.
  void Finish() {
    {
      const std::scoped_lock lock(mutex_);
      at_end_ = true;
      changed_.notify_all();
    }
    thread_.clear();
  }

 private:
  struct Batch {
    std::vector<LaunchedRecord> events;
    std::vector<QueueEntry> entries;
  };
  static constexpr size_t kMaxWaiting = 2;  // half a MiB each

  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return at_end_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Batch batch = std::move(waiting_.front());
      waiting_.pop_front();
      changed_.notify_all();
      lock.unlock();
      Follow(batch.events, batch.entries, ranks_);
      lock.lock();
      used_.push_back(std::move(batch));
    }
  }

  ProcessFollower& ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> waiting_;
  std::vector<Batch> used_;  // whose memory is reused
  bool at_end_ = false;
  std::vector<std::jthread> thread_;  // one or none
};

// Launches run nearly in order of their correlation ids, so usually only the last few thousand need to be
// reordered, without sorting on disk. Returns false if some belong further back: ids that wrapped, events
// without an id. `in_two`: with another thread.
Result<bool> FollowWhileJoining(const ProcessRecords& records, int64_t gpu_ahead_ns, bool in_two,
                                ProcessFollower& ranks, int64_t& shared_numbers) {
  FollowingThread following(ranks, in_two);
  LaunchJoin launches(records, gpu_ahead_ns);
  Reorder<LaunchedRecord, ByStart> events;
  Reorder<QueueEntry, ByTime> joining;
  std::optional<LaunchedRecord> followed;
  for (bool at_end = false; !at_end;) {
    while (events.size() < kReorderedRecords && !at_end) {
      LaunchedRecord& record = events.Add();
      at_end = !launches.Next(record);
      if (at_end)
        events.RemoveLast();
      else if (record.has_call != 0)
        joining.Add() = EntryOf(record);
    }
    const std::span<const LaunchedRecord> sorted = events.Sort();
    const std::span<const QueueEntry> entries = joining.Sort();
    if (followed.has_value() && ((!sorted.empty() && ByStart()(sorted.front(), *followed)) ||
                                 (!entries.empty() && entries.front().time_ns <= followed->gpu.start_ns)))
      return false;
    const size_t count = at_end ? sorted.size() : sorted.size() / 2;
    if (count == 0) continue;
    followed = sorted[count - 1];
    const auto later = std::ranges::upper_bound(entries, followed->gpu.start_ns, {}, &QueueEntry::time_ns);
    const auto joined = static_cast<size_t>(later - entries.begin());
    following.Add(sorted.first(count), entries.first(joined));
    for (const LaunchedRecord& event : sorted.first(count)) ranks.Sum(event.gpu);
    events.Drop(count);
    joining.Drop(joined);
  }
  following.Finish();
  TRY(launches.status());
  shared_numbers = launches.shared_numbers();
  return true;
}

// For any order: sorts runs on disk.
Status FollowSorted(const ProcessRecords& records, int64_t gpu_ahead_ns, ProcessFollower& ranks,
                    int64_t& shared_numbers) {
  const auto file = std::make_shared<TemporaryFile>();
  SortedRuns<LaunchedRecord, ByStart> sorted(file);
  SortedRuns<QueueEntry, ByTime> sorted_entries(file);
  LaunchJoin launches(records, gpu_ahead_ns);
  LaunchedRecord record;
  while (launches.Next(record)) {
    sorted.Add(record);
    if (record.has_call != 0) sorted_entries.Add(EntryOf(record));
  }
  TRY(launches.status());
  shared_numbers = launches.shared_numbers();
  TRY(sorted.Finish());
  TRY(sorted_entries.Finish());
  Merged<LaunchedRecord, ByStart> events(sorted.runs());
  Merged<QueueEntry, ByTime> joining(sorted_entries.runs());
  const QueueEntry* entry = joining.Next();
  while (const LaunchedRecord* event = events.Next()) {
    for (; entry != nullptr && entry->time_ns <= event->gpu.start_ns; entry = joining.Next())
      ranks.Join(*entry);
    ranks.Add(*event);
    ranks.Sum(event->gpu);
  }
  TRY(events.status());
  return joining.status();
}

Result<std::vector<RankResult>> FollowProcess(const TraceState& state, size_t process,
                                              std::span<const uint16_t> ranks, const Names& names,
                                              bool in_two, const FollowOptions& options) {
  const ProcessRecords& records = state.processes()[process];
  const int64_t owner = state.ranks().processes()[process];
  const ClockWithout clock(state.unrecorded().left_out);
  const HostTimes host{state.steps().StepsOf(owner, options.steps, clock),
                       state.steps().TimesOf(owner, kLoaderWait, clock),
                       state.communication().LaunchesOf(owner)};
  int64_t gpu_ahead_ns = 0;
  if (state.separate_gpu_clock()) {
    ASSIGN_OR_RETURN(gpu_ahead_ns, EstimateGpuClock(records));
  }
  ProcessFollower follower(state, records, ranks, names, host, gpu_ahead_ns, options.sequences);
  int64_t shared_numbers = 0;
  ASSIGN_OR_RETURN(const bool followed,
                   FollowWhileJoining(records, gpu_ahead_ns, in_two, follower, shared_numbers));
  const auto finish = [&shared_numbers](ProcessFollower done) -> Result<std::vector<RankResult>> {
    ASSIGN_OR_RETURN(std::vector<RankResult> results, std::move(done).Finish());
    if (!results.empty()) results.front().shared_numbers = shared_numbers;
    return results;
  };
  if (followed) return finish(std::move(follower));
  ProcessFollower again(state, records, ranks, names, host, gpu_ahead_ns, options.sequences);
  TRY(FollowSorted(records, gpu_ahead_ns, again, shared_numbers));
  return finish(std::move(again));
}

}  // namespace

Result<std::vector<RankResult>> FollowProcesses(const TraceState& state, int threads,
                                                const FollowOptions& options) {
  std::vector<size_t> all(state.processes().size());
  std::iota(all.begin(), all.end(), size_t{0});
  return FollowProcesses(state, all, threads, options);
}

Result<std::vector<RankResult>> FollowProcesses(const TraceState& state, std::span<const size_t> processes,
                                                int threads, const FollowOptions& options) {
  const Names names(state, options.communication);
  std::vector<std::vector<uint16_t>> ranks(
      state.ranks().processes().size());  // with GPU work, by their processes
  for (size_t rank = 0; rank < state.extents().size(); ++rank)
    if (!state.extents()[rank].IsEmpty())
      ranks[state.ranks().ProcessOf(static_cast<uint16_t>(rank))].push_back(static_cast<uint16_t>(rank));
  const size_t count = processes.size();
  std::vector<Result<std::vector<RankResult>>> results(count);
  std::atomic<size_t> next = 0;
  const bool in_two = 2 * count <= static_cast<size_t>(threads);
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++)
      results[i] = FollowProcess(state, processes[i], ranks[processes[i]], names, in_two, options);
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min(count, static_cast<size_t>(threads)); ++i)
      if (!StartThread(others, work)) break;
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
