// SPDX-License-Identifier: Apache-2.0
#include "diagnose/critical_path.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "diagnose/incident_table.h"
#include "diagnose/thread_split.h"

namespace gpusonde::diagnose {
namespace {

// The states that a wait for the GPU may be, the likeliest first.
constexpr std::array kStatesOfGpuWait = {ThreadState::kSleeping, ThreadState::kWaiting,
                                         ThreadState::kNetwork,  ThreadState::kRunning,
                                         ThreadState::kBlocked,  ThreadState::kBlockedIo};

// How much of a thread's time in each state is a wait for the GPU of this length.
ThreadParts CoveredBy(double wait_ns, const ThreadParts& parts) {
  ThreadParts covered;
  for (const ThreadState state : kStatesOfGpuWait) {
    covered[state] = std::min(wait_ns, parts[state]);
    wait_ns -= covered[state];
  }
  return covered;
}

// A wait for the GPU in one bucket, by what the GPU did: the program's kernels or copies, only work of
// another loop, or nothing.
struct GpuWait {
  double run = 0, copy = 0, other = 0, queue = 0;
  double total() const { return run + copy + other + queue; }
};

class Accountant {
  using enum ThreadState;

 public:
  Accountant(const Program& program, const HostTimeline& host, const GpuWork& gpu, const TimeRange& step)
      : program_(program),
        host_(host),
        step_(step),
        syncs_(UnionOf(gpu.syncs)),
        kernels_(UnionOf(gpu.kernels, step)),
        copies_(UnionOf(gpu.copies, step)),
        of_other_loops_(UnionOf(gpu.of_other_loops, step)),
        syncs_of_other_loops_(UnionOf(gpu.syncs_of_other_loops, step)) {}

  PathAccount Run() {
    FindStart();
    int64_t covered_until_ns = step_.from_ns;
    host_.ForEachBucket(program_.process, program_.launch_thread, step_,
                        [&](const ThreadTime& whole, const TimeRange& bucket, const TimeRange& part) {
                          if (part.from_ns > covered_until_ns) AddUncovered({covered_until_ns, part.from_ns});
                          AddBucket(TimeIn(part, whole, bucket), part, bucket.from_ns);
                          covered_until_ns = std::max(covered_until_ns, part.to_ns);
                        });
    if (covered_until_ns < step_.to_ns) AddUncovered({covered_until_ns, step_.to_ns});
    MoveThrottled(SumOf(model::Metric::kCgroupThrottled), account_.states, account_.behind);
    MoveIoThrottled(SumOf(model::Metric::kCgroupIoThrottled), account_.states);
    return RunLoaders();
  }

  PathAccount RunLoaders() {
    AddLoaders();
    MoveThrottled(SumOf(model::Metric::kCgroupThrottled), account_.loaders, account_.loaders_behind);
    MoveIoThrottled(SumOf(model::Metric::kCgroupIoThrottled), account_.loaders);
    return std::move(account_);
  }

 private:
  double SumOf(model::Metric metric) const {
    return host_.SumOf(metric, program_.process, step_).value_or(0);
  }

  // How long any of this work runs within disjoint ranges.
  static double AnyIn(std::span<const TimeRange> within,
                      std::initializer_list<std::span<const TimeRange>> work) {
    if (within.empty()) return 0;
    std::vector<TimeRange> busy;
    for (const std::span<const TimeRange> ranges : work)
      for (const TimeRange& part : Intersect(within, ranges)) busy.push_back(part);
    std::ranges::sort(busy, {}, &TimeRange::from_ns);
    return LengthNs(UnionOf(busy, {within.front().from_ns, within.back().to_ns}));
  }

  // What the GPU does for the program's loop within disjoint ranges.
  GpuWait WorkIn(std::span<const TimeRange> within) const {
    const double run = LengthNs(Intersect(within, kernels_));
    return {.run = run, .copy = copies_.empty() ? 0 : AnyIn(within, {kernels_, copies_}) - run};
  }

  GpuWait WaitIn(const TimeRange& range) const {
    const std::vector<TimeRange> syncs = UnionOf(syncs_, range);
    GpuWait wait = WorkIn(syncs);
    if (!of_other_loops_.empty())
      wait.other = AnyIn(syncs, {kernels_, copies_, of_other_loops_}) - wait.total();
    wait.queue = LengthNs(syncs) - wait.total();
    return wait;
  }

  // What the GPU does for the program's loop beside a wait for it.
  GpuWait WorkBeside(const GpuWait& wait, const TimeRange& range) const {
    const GpuWait all = WorkIn(std::array{range});
    return {.run = std::max(0.0, all.run - wait.run), .copy = std::max(0.0, all.copy - wait.copy)};
  }

  void AddGpu(const GpuWait& wait, double factor) {
    account_.states[State::kGpuRun] += factor * (wait.run + wait.other);
    account_.states[State::kGpuCopy] += factor * wait.copy;
    account_.states[State::kGpuQueue] += factor * wait.queue;
  }

  // If the GPU has work but does none while a thread of the program is stopped, that thread is what the GPU
  // waits for. A frozen cgroup stops the threads that run, such as one that feeds the GPU, but leaves waiting
  // threads in their wait.
  void AddWaitForGpu(GpuWait wait, double factor, const TimeRange& range) {
    if (wait.queue > 0) {
      const ThreadTime time = host_.LongestStopped(program_.process, range, program_.launch_thread);
      const double stopped = std::min(wait.queue, time[kStopped]);
      if (stopped > 0) AddStopped(program_.process, time, factor * stopped / time[kStopped]);
      wait.queue -= stopped;
    }
    AddGpu(wait, factor);
  }

  // Finds the bucket in which the launch thread started, if that isn't the main thread.
  void FindStart() {
    if (program_.launch_thread == program_.main_thread) return;
    first_bucket_ns_ = host_.KnownSince(program_.process, program_.launch_thread).value_or(0);
  }

  // An interval without signals: only the GPU's part is known.
  void AddUncovered(const TimeRange& range) {
    const GpuWait wait = WaitIn(range);
    AddGpu(wait, 1);
    AddRest(LengthNs(range) - wait.total(), range, range.from_ns < first_bucket_ns_);
  }

  // Adds what no signal of the launch thread covers. Before it started, the main thread led to it.
  void AddRest(double ns, const TimeRange& range, bool before_start) {
    if (ns <= 0) return;
    ThreadTime time;
    if (before_start) {
      time = host_.Of(program_.process, program_.main_thread, range);
      RemoveWaitsForProgram(ns, time);
    }
    const double known = std::min(ns, time.total());
    account_.states[State::kUnexplained] += ns - known;
    if (known > 0) AddMainThread(time, known / time.total(), range);
  }

  void AddMainThread(const ThreadTime& time, double factor, const TimeRange& range) {
    const ThreadParts parts = SplitTime(time);
    AddActive(parts, factor, State::kCpu, account_.states);
    AddRunQueue(time, factor);
    AddStopped(program_.process, time, factor);
    AddSleep(factor * parts[kSleeping]);
    AddWaits(time, factor, factor, range);
  }

  // How much of an interval the thread may have waited for the GPU: while it had a CPU or wanted none.
  static double OpenIn(const ThreadParts& parts, const TimeRange& range) {
    return std::max(
        0.0, LengthNs(range) - parts[kInterrupted] - parts[kRunQueue] - parts[kReclaim] - parts[kStopped]);
  }

  // The thread's time in a part of a bucket: its share of what the waits for the GPU cover, whose times are
  // known, and its share of the rest. By the part's length alone, a step that begins at the end of such a
  // wait would begin asleep.
  ThreadTime TimeIn(const TimeRange& part, const ThreadTime& whole, const TimeRange& bucket) const {
    if (part.from_ns == bucket.from_ns && part.to_ns == bucket.to_ns) return whole;
    const double wait = LengthNs(UnionOf(syncs_, bucket));
    const ThreadParts parts = SplitTime(whole);
    const double covered_ns = std::min(wait, OpenIn(parts, bucket));
    const double rest_ns = LengthNs(bucket) - covered_ns;
    ThreadTime time;
    if (covered_ns <= 0 || rest_ns <= 0) {
      time.Add(whole, LengthNs(part) / LengthNs(bucket));
      return time;
    }
    const double wait_share = LengthNs(UnionOf(syncs_, part)) / wait;
    const double rest_share = (LengthNs(part) - wait_share * covered_ns) / rest_ns;
    const ThreadParts covered = CoveredBy(covered_ns, parts);
    TimeBy<ThreadState, kThreadStates> factors;
    factors.ns.fill(rest_share);
    for (const ThreadState state : kStatesOfGpuWait)
      if (covered[state] > 0) factors[state] += (wait_share - rest_share) * covered[state] / whole[state];
    time.Add(whole, factors);
    return time;
  }

  // Adds the part of a bucket that lies in the range.
  void AddBucket(const ThreadTime& time, const TimeRange& range, int64_t bucket_ns) {
    const ThreadParts parts = SplitTime(time);
    Account& states = account_.states;
    // Interrupts, reclaim, stops and the run queue delay the path whatever else happens.
    states[State::kInterrupted] += parts[kInterrupted];
    states[State::kReclaim] += parts[kReclaim];
    AddRunQueue(time, 1);
    AddStopped(program_.process, time, 1);
    // A wait for the GPU sleeps or spins.
    double open = OpenIn(parts, range);
    const GpuWait wait = WaitIn(range);
    const double gpu = std::min(wait.total(), open);
    if (wait.total() > 0) AddWaitForGpu(wait, gpu / wait.total(), range);
    open -= gpu;
    // What the wait for the GPU doesn't cover goes to the thread's states.
    const ThreadParts covered = CoveredBy(gpu, parts);
    const auto assign = [&](ThreadState state) {
      const double taken = std::min(parts[state] - covered[state], open);
      open -= taken;
      return taken;
    };
    double sleeping = assign(kSleeping);
    if (sleeping > 0) {  // while the GPU works: it polls
      const GpuWait busy = WorkBeside(wait, range);
      const double polling = std::min(sleeping, busy.total());
      if (polling > 0) AddGpu(busy, polling / busy.total());
      sleeping -= polling;
    }
    const double waiting = assign(kWaiting);
    const double network = assign(kNetwork);
    const double running = assign(kRunning);
    const double blocked = assign(kBlocked);
    const double blocked_io = assign(kBlockedIo);
    AddSleep(sleeping);
    states[State::kCpu] += running;
    states[State::kBlocked] += blocked;
    states[State::kBlockedIo] += blocked_io;
    AddWaits(time, time[kWaiting] > 0 ? waiting / time[kWaiting] : 0,
             time[kNetwork] > 0 ? network / time[kNetwork] : 0, range);
    AddRest(open, range, bucket_ns <= first_bucket_ns_);
  }

  // A sleep that the step's own thread asked for.
  void AddSleep(double ns) {
    account_.states[State::kSleeping] += ns;
    account_.idle[State::kSleeping] += ns;
    account_.launch_thread_asleep += ns;
  }

  // Adds what the step's own thread waited for others and for packets, each with a factor.
  void AddWaits(const ThreadTime& time, double waiting, double network, const TimeRange& range) {
    for (const auto& [who, ns] : time.By(kWaiting)) AddWait(who, ns * waiting, range);
    for (const auto& [who, ns] : time.By(kNetwork)) {
      const double share = ns * network;
      who.IsZero() ? AddNetworkWait(program_.process, share, range) : AddWait(who, share, range);
    }
  }

  // Adds what a thread did itself, except waiting for a CPU. `cpu` is the state in which running counts.
  static void AddActive(const ThreadParts& parts, double factor, State cpu, Account& states) {
    states[State::kInterrupted] += factor * parts[kInterrupted];
    states[State::kReclaim] += factor * parts[kReclaim];
    states[cpu] += factor * parts[kRunning];
    states[State::kBlocked] += factor * parts[kBlocked];
    states[State::kBlockedIo] += factor * parts[kBlockedIo];
  }

  void AddStopped(const Id128& process, const ThreadTime& time, double factor) {
    if (time[kStopped] <= 0) return;
    account_.states[State::kStopped] += factor * time[kStopped];
    account_.halted[process] += factor * time[kStopped];
    for (const auto& [who, ns] : time.By(kStopped)) account_.stopped_by[who] += factor * ns;
  }

  void AddRunQueue(const ThreadTime& time, double factor) {
    AddRunQueue(time, factor, account_.states, account_.behind);
  }
  void AddRunQueue(const ThreadTime& time, double factor, Account& states,
                   std::map<Id128, double>& behind) const {
    double own_ns = 0;
    for (const auto& [who, ns] : time.By(kRunQueue))
      if (program_.family.contains(who)) own_ns += ns;
    // The program's threads would not wait for each other if others hadn't taken the other CPUs.
    const double displaced_ns = std::min(time[kDisplaced], own_ns);
    const double kept = own_ns > 0 ? 1 - displaced_ns / own_ns : 1;
    const auto add = [&](State state, const Id128& who, double ns) {
      states[state] += factor * ns;
      behind[who] += factor * ns;
    };
    for (const auto& [who, ns] : time.By(kRunQueue)) {
      const bool own = program_.family.contains(who);
      add(own ? State::kRunQueueOwn : State::kRunQueue, who, own ? kept * ns : ns);
    }
    if (displaced_ns <= 0) return;
    for (const auto& [who, ns] : time.By(kDisplaced))
      add(State::kRunQueue, who, displaced_ns * ns / time[kDisplaced]);
  }

  void AddLoaders() {
    Account& states = account_.loaders;
    for (const Id128& loader : program_.loaders) {
      const std::optional<int32_t> thread = BusiestOf(loader);
      if (!thread.has_value()) continue;
      const ThreadTime time = host_.Of(loader, *thread, step_);
      AddActive(SplitTime(time), 1, State::kLoader, states);
      states[State::kNetwork] += time[kNetwork];
      states[State::kStopped] += time[kStopped];
      AddRunQueue(time, 1, states, account_.loaders_behind);
    }
  }

  // Splits `ns` of waiting for a process by what that process did in the meantime. If it waited itself,
  // splits that part by what the processes did for which it waited.
  void AddWait(const Id128& who, double ns, const TimeRange& range, int depth = 0) {
    if (ns <= 0) return;
    if (program_.launch_threads.contains(who)) {
      AddRankWait(who, ns, range, 0);
      return;
    }
    if (!program_.family.contains(who)) {
      AddOutsideWait(who, ns);
      return;
    }
    const std::optional<int32_t> thread = BusiestOf(who);
    ThreadTime time = thread.has_value() ? host_.Of(who, *thread, range) : ThreadTime{};
    if (time.total() <= 0) {
      AddWaitOf(who, ns, range, depth);
      return;
    }
    if (who != program_.process) RemoveWaitsForProgram(ns, time);
    const double factor = ns / time.total();
    if (who == program_.process) MoveWaitForGpu(factor, range, time);
    AddOther(who, time, factor, range);
    AddWaitOf(who, factor * time[kWaiting], range, depth);
  }

  // Takes out of the time of a thread of the program what it waited for the GPU, as the thread of another
  // loop does.
  void MoveWaitForGpu(double factor, const TimeRange& range, ThreadTime& time) {
    const std::vector<TimeRange> syncs = Intersect(std::array{range}, syncs_of_other_loops_);
    const double length = LengthNs(syncs);
    double left = length;
    TimeBy<ThreadState, kThreadStates> kept;
    kept.ns.fill(1);
    for (const ThreadState state : {kSleeping, kWaiting, kNetwork}) {
      const double taken = std::min(left, time[state]);
      if (taken <= 0) continue;
      kept[state] -= taken / time[state];
      left -= taken;
    }
    if (left >= length) return;
    const double busy = AnyIn(syncs, {kernels_, copies_, of_other_loops_});
    AddGpu({.other = busy, .queue = length - busy}, factor * (length - left) / length);
    ThreadTime rest;
    rest.Add(time, kept);
    time = std::move(rest);
  }

  // A process can't have waited for the program while that waited `ns` for it: it did so in the rest of the
  // time, as a loader that waits for the next request.
  void RemoveWaitsForProgram(double ns, ThreadTime& time) const {
    double rest = time.total() - ns;
    for (const ThreadState state : kWaitStates) {
      const double removed = std::min(rest, time.By(state, program_.process));
      if (removed <= 0) continue;
      time.Add(state, -removed, program_.process);
      rest -= removed;
    }
  }

  // Adds what a thread did while it was waited for, except its own waits for others.
  void AddOther(const Id128& who, const ThreadTime& time, double factor, const TimeRange& range) {
    Account& states = account_.states;
    const ThreadParts parts = SplitTime(time);
    AddActive(parts, factor, State::kLoader, states);
    if (who == program_.process) account_.own_threads += factor * parts[kRunning];
    if (parts[kRunning] > 0) account_.ran[who] += factor * parts[kRunning];
    if (time[kSleeping] > 0) account_.slept[who] += factor * time[kSleeping];
    AddRunQueue(time, factor);
    AddStopped(who, time, factor);
    states[State::kSleeping] += factor * time[kSleeping];
    account_.idle[State::kSleeping] += factor * time[kSleeping];
    // A server on this machine is named. Processes of the program may wait for each other in a circle.
    double unknown = time[kNetwork];
    for (const auto& [sender, ns] : time.By(kNetwork)) {
      if (sender.IsZero() || program_.family.contains(sender) || program_.launch_threads.contains(sender))
        continue;
      AddOutsideWait(sender, factor * ns);
      unknown -= ns;
    }
    AddNetworkWait(who, factor * unknown, range);
  }

  // A wait that a process outside the program ended; zero id: an unknown one.
  void AddOutsideWait(const Id128& who, double ns) {
    if (!who.IsZero()) account_.waited_outside[who] += ns;
    account_.states[State::kWaiting] += ns;
    account_.idle[State::kWaiting] += ns;
  }

  // Splits `ns` for which a process of the program waited by what the program's other processes did for which
  // its threads waited, as when a helper thread hands over the results of a pool's processes. If its threads
  // waited only for processes outside the program, a helper thread handed over what those sent.
  void AddWaitOf(const Id128& who, double ns, const TimeRange& range, int depth) {
    const Waits& waits = WaitsOf(who);
    const bool within = waits.within_ns > 0;
    const double sum = within ? waits.within_ns : waits.outside_ns;
    if (sum <= 0 || ns < kIncidentTable.chain.min_ns || depth >= kIncidentTable.chain.max_length) {
      if (who == program_.process)
        AddWaitForEachOther(ns, range);
      else
        account_.states[State::kWaiting] += ns;
      return;
    }
    for (const auto& [other, waited] : within ? waits.within : waits.outside) {
      const double share = ns * waited / sum;
      within ? AddWait(other, share, range, depth + 1) : AddOutsideWait(other, share);
    }
  }

  // Splits `ns` in which threads of the program waited for each other, as in a server whose threads hand over
  // requests and answers. At each moment one of the threads did something else, so the time is split by what
  // each did besides such waits, in proportion to its CPU time.
  void AddWaitForEachOther(double ns, const TimeRange& range) {
    if (ns <= 0) return;
    std::vector<std::pair<ThreadTime, double>> others;  // and the time besides such waits
    double running = 0;
    host_.ForEachOther(program_.process, range, program_.launch_thread, [&](int32_t, const ThreadTime& time) {
      if (time[kRunning] <= 0) return;
      running += time[kRunning];
      others.emplace_back(time, time.total() - time[kWaiting]);
    });
    if (running <= 0) {
      account_.states[State::kWaiting] += ns;
      account_.own_threads_idle += ns;
    }
    for (const auto& [time, besides] : others)
      AddOther(program_.process, time, ns * (time[kRunning] / running) / besides, range);
  }

  // For how long threads of a process waited for others, ns.
  struct Waits {
    std::map<Id128, double> within, outside;  // the program
    double within_ns = 0, outside_ns = 0;     // their sums
  };

  // Of the threads of `who` without the launch thread.
  const Waits& WaitsOf(const Id128& who) {
    const auto [found, is_new] = waits_.try_emplace(who);
    if (!is_new) return found->second;
    Waits& waits = found->second;
    const int32_t except = who == program_.process ? program_.launch_thread : 0;
    for (const auto& [other, ns] : host_.WaitsOfOthers(who, step_, except)) {
      if (other == who || other == program_.process || other.IsZero()) continue;
      const bool within = program_.family.contains(other);
      if (!within && program_.launch_threads.contains(other)) continue;  // a rank
      (within ? waits.within : waits.outside).emplace(other, ns);
      (within ? waits.within_ns : waits.outside_ns) += ns;
    }
    return waits;
  }

  // Adds `ns` for which a process of the program waited for a packet of unknown origin; as far as packets of
  // the job were queued at a network device meanwhile, to the network queue.
  void AddNetworkWait(const Id128& who, double ns, const TimeRange& range) {
    if (ns <= 0) return;
    const auto queued_of = [&](const Id128& process) {
      return host_.SumOf(model::Metric::kNetworkQueued, process, range).value_or(0);
    };
    double queued = 0;
    for (const Id128& member : program_.family) queued = std::max(queued, queued_of(member));
    for (const Id128& rank : program_.ranks) queued = std::max(queued, queued_of(rank));
    account_.states[State::kNetworkQueue] += std::min(queued, ns);
    account_.states[State::kNetwork] += ns - std::min(queued, ns);
    account_.idle[State::kNetwork] += ns - std::min(queued, ns);
    if (who == program_.process) account_.packets += ns - std::min(queued, ns);
  }

  // Splits `ns` of waiting for another rank by what that rank did meanwhile. If it waited for a third rank,
  // splits that part by what the third rank did.
  void AddRankWait(const Id128& who, double ns, const TimeRange& range, int depth) {
    const auto launch_thread = program_.launch_threads.find(who);
    const ThreadTime time = host_.Of(who, launch_thread->second, range);
    // Two ranks can't wait for each other: this program didn't wait while the rank waited for it.
    double known = time.total();
    for (const ThreadState state : kWaitStates) known -= time.By(state, program_.process);
    if (known <= 0) {
      AddNetworkWait(who, ns, range);
      return;
    }
    const double factor = ns / known;
    double own = known;
    for (const ThreadState state : kWaitStates)
      for (const auto& [other, waited] : time.By(state)) {
        if (other == program_.process || other == who) continue;
        const bool is_rank = program_.launch_threads.contains(other);
        const bool is_network = state == kNetwork && other.IsZero();
        if (is_rank && depth < kIncidentTable.chain.max_length &&
            factor * waited >= kIncidentTable.chain.min_ns)
          AddRankWait(other, factor * waited, range, depth + 1);
        else if (is_network)
          AddNetworkWait(who, factor * waited, range);
        else
          continue;
        own -= waited;
      }
    if (own <= 0) return;
    account_.states[State::kPeer] += factor * own;
    AddRank(account_.ranks[who], time, factor, factor * own);
  }

  // Adds what the rank did by itself within `ns`.
  void AddRank(RankAccount& rank, const ThreadTime& time, double factor, double ns) const {
    const double did = time.total() - time[kWaiting] - time[kNetwork] - time[kSleeping] - time[kStopped];
    rank.idle += std::max(0.0, ns - factor * did);
    AddActive(SplitTime(time), factor, State::kCpu, rank.states);
    rank.states[State::kSleeping] += factor * time[kSleeping];
    rank.states[State::kStopped] += factor * time[kStopped];
    AddRunQueue(time, factor, rank.states, rank.behind);
  }

  // For the program's own process, a thread other than the launch thread: signals don't say which one woke
  // it.
  std::optional<int32_t> BusiestOf(const Id128& process) {
    const auto [found, is_new] = busiest_.try_emplace(process);
    if (is_new)
      found->second = host_.BusiestThread(
          process, step_, process == program_.process ? std::optional(program_.launch_thread) : std::nullopt);
    return found->second;
  }

  // Moves throttled time out of the run-queue delay, as a throttled thread looks runnable, behind no process
  // or behind the one that ran on its CPU meanwhile. Throttled time is summed over all CPUs, so it is only an
  // upper bound.
  static void MoveThrottled(double throttled, Account& states, std::map<Id128, double>& behind) {
    const double waited = states[State::kRunQueue] + states[State::kRunQueueOwn];
    if (throttled <= 0 || waited <= 0) return;
    const double moved = std::min(throttled, waited);
    states[State::kThrottled] += moved;
    double left = moved;
    // First take the delay that isn't attributed to anyone.
    auto& unknown = behind[Id128{}];
    const double unnamed = std::min({unknown, left, states[State::kRunQueue]});
    unknown -= unnamed;
    states[State::kRunQueue] -= unnamed;
    left -= unnamed;
    const double named = states[State::kRunQueue] + states[State::kRunQueueOwn];
    if (left <= 0 || named <= 0) return;
    const double kept = std::max(0.0, 1 - left / named);
    states[State::kRunQueue] *= kept;
    states[State::kRunQueueOwn] *= kept;
    for (auto& [who, ns] : behind)
      if (!who.IsZero()) ns *= kept;
  }

  // Moves the part of the I/O wait that the cgroup's limit alone would take, however fast the device is.
  static void MoveIoThrottled(double throttled, Account& states) {
    const double moved = std::min(throttled, states[State::kBlockedIo]);
    states[State::kBlockedIo] -= moved;
    states[State::kIoThrottled] += moved;
  }

  const Program& program_;
  const HostTimeline& host_;
  TimeRange step_;
  std::vector<TimeRange> syncs_, kernels_, copies_, of_other_loops_, syncs_of_other_loops_;
  int64_t first_bucket_ns_ = 0;  // of the launch thread, in which it started; 0: it is the main thread
  std::map<Id128, std::optional<int32_t>> busiest_;
  std::map<Id128, Waits> waits_;
  PathAccount account_;
};

}  // namespace

PathAccount AccountFor(const Program& program, const HostTimeline& host, const GpuWork& gpu,
                       const TimeRange& step) {
  return Accountant(program, host, gpu, step).Run();
}

void AccountForLoaders(const Program& program, const HostTimeline& host, const TimeRange& step,
                       PathAccount& account) {
  PathAccount loaders = Accountant(program, host, {}, step).RunLoaders();
  account.loaders = loaders.loaders;
  account.loaders_behind = std::move(loaders.loaders_behind);
}

}  // namespace gpusonde::diagnose
