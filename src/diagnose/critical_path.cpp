// SPDX-License-Identifier: Apache-2.0
#include "diagnose/critical_path.h"

#include <algorithm>
#include <optional>

namespace gpusonde::diagnose {
namespace {

// Of ranks that wait for each other; what is left then is the last one's.
constexpr int kLongestChain = 8;
// Less isn't followed any further: where all wait for all, the chains would be endless.
constexpr double kLeastToFollowNs = 1e5;

// Sorted, disjoint, and cut to [from, to), of intervals by start.
std::vector<Interval> UnionOf(std::span<const Interval> intervals, int64_t from_ns, int64_t to_ns) {
  std::vector<Interval> joined;
  for (Interval interval : intervals) {
    if (interval.start_ns >= to_ns) break;
    interval.start_ns = std::max(interval.start_ns, from_ns);
    interval.end_ns = std::min(interval.end_ns, to_ns);
    if (interval.end_ns <= interval.start_ns) continue;
    if (!joined.empty() && interval.start_ns <= joined.back().end_ns)
      joined.back().end_ns = std::max(joined.back().end_ns, interval.end_ns);
    else
      joined.push_back(interval);
  }
  return joined;
}

double LengthOf(std::span<const Interval> disjoint) {
  double sum = 0;
  for (const Interval& interval : disjoint) sum += static_cast<double>(interval.end_ns - interval.start_ns);
  return sum;
}

// Of two sorted, disjoint lists.
std::vector<Interval> Intersect(std::span<const Interval> a, std::span<const Interval> b) {
  std::vector<Interval> both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const int64_t start_ns = std::max(a[i].start_ns, b[j].start_ns);
    const int64_t end_ns = std::min(a[i].end_ns, b[j].end_ns);
    if (start_ns < end_ns) both.push_back({start_ns, end_ns});
    a[i].end_ns < b[j].end_ns ? ++i : ++j;
  }
  return both;
}

// How the wait for the GPU is made up, in one bucket.
struct GpuWait {
  double run = 0, copy = 0, queue = 0;
  double total() const { return run + copy + queue; }
};

class Accountant {
 public:
  Accountant(const Program& program, const HostTimeline& host, const GpuWork& gpu, int64_t from_ns,
             int64_t to_ns)
      : program_(program),
        host_(host),
        from_ns_(from_ns),
        to_ns_(to_ns),
        syncs_(UnionOf(gpu.syncs, from_ns, to_ns)),
        kernels_(UnionOf(gpu.kernels, from_ns, to_ns)),
        copies_(UnionOf(gpu.copies, from_ns, to_ns)) {}

  PathAccount Run() {
    int64_t told_until_ns = from_ns_;
    host_.ForEachBucket(program_.process, program_.feeder, from_ns_, to_ns_,
                        [&](const ThreadTime& time, int64_t begin_ns, int64_t end_ns) {
                          if (begin_ns > told_until_ns) Silent(told_until_ns, begin_ns);
                          Bucket(time, begin_ns, end_ns);
                          told_until_ns = std::max(told_until_ns, end_ns);
                        });
    if (told_until_ns < to_ns_) Silent(told_until_ns, to_ns_);
    Throttle(SumOf(model::Metric::kCgroupThrottled), account_.states, account_.behind);
    ThrottleIo(SumOf(model::Metric::kCgroupIoThrottled), account_.states);
    return RunLoaders();
  }

  PathAccount RunLoaders() {
    Loaders();
    Throttle(SumOf(model::Metric::kCgroupThrottled), account_.loaders, account_.loaders_behind);
    ThrottleIo(SumOf(model::Metric::kCgroupIoThrottled), account_.loaders);
    return std::move(account_);
  }

 private:
  double SumOf(model::Metric metric) const {
    return host_.SumOf(metric, program_.process, from_ns_, to_ns_).value_or(0);
  }

  GpuWait WaitIn(int64_t begin_ns, int64_t end_ns) const {
    const std::vector<Interval> syncs = UnionOf(syncs_, begin_ns, end_ns);
    if (syncs.empty()) return {};
    const std::vector<Interval> running = Intersect(syncs, kernels_);
    std::vector<Interval> busy(running);
    for (const Interval& copying : Intersect(syncs, copies_)) busy.push_back(copying);
    std::ranges::sort(busy, {}, &Interval::start_ns);
    const double run = LengthOf(running);
    const double any = LengthOf(UnionOf(busy, begin_ns, end_ns));
    return {.run = run, .copy = any - run, .queue = LengthOf(syncs) - any};
  }

  void AddGpu(const GpuWait& wait, double factor) {
    account_.states[State::kGpuRun] += factor * wait.run;
    account_.states[State::kGpuCopy] += factor * wait.copy;
    account_.states[State::kGpuQueue] += factor * wait.queue;
  }

  // No signal: only the GPU's side is known.
  void Silent(int64_t begin_ns, int64_t end_ns) {
    const GpuWait wait = WaitIn(begin_ns, end_ns);
    AddGpu(wait, 1);
    account_.states[State::kUnexplained] += static_cast<double>(end_ns - begin_ns) - wait.total();
  }

  void Bucket(const ThreadTime& time, int64_t begin_ns, int64_t end_ns) {
    const auto length = static_cast<double>(end_ns - begin_ns);
    Account& states = account_.states;
    // Stolen from the path in any case.
    const double interrupted = std::min(time.interrupted, time.running);
    states[State::kInterrupted] += interrupted;
    RunQueue(time, 1);
    const double reclaim =
        std::min(time.reclaim, time.running - interrupted + time.blocked + time.blocked_io);
    states[State::kReclaim] += reclaim;
    // A wait for the GPU is sleep, or a loop that looks: what is left of it when a CPU was lacking.
    double open = std::max(0.0, length - interrupted - time.run_queue - reclaim);
    const GpuWait wait = WaitIn(begin_ns, end_ns);
    const double gpu = std::min(wait.total(), open);
    if (wait.total() > 0) AddGpu(wait, gpu / wait.total());
    open -= gpu;
    // The rest by what the thread did, those first that hardly are a wait for the GPU.
    double left_of_gpu = gpu;
    const auto take = [&](double ns) {
      const double covered = std::min(left_of_gpu, ns);
      left_of_gpu -= covered;
      const double taken = std::min(ns - covered, open);
      open -= taken;
      return taken;
    };
    const double sleeping = take(time.sleeping);
    const double waiting = take(time.waiting);
    const double network = take(time.network);
    const double running = take(std::max(0.0, time.running - interrupted - reclaim));
    const double reclaim_off_cpu = std::max(0.0, reclaim - std::max(0.0, time.running - interrupted));
    const double blocked = take(std::max(0.0, time.blocked - reclaim_off_cpu));
    const double blocked_io = take(time.blocked_io);
    states[State::kSleeping] += sleeping;
    account_.idle[State::kSleeping] += sleeping;
    states[State::kCpu] += running;
    states[State::kBlocked] += blocked;
    states[State::kBlockedIo] += blocked_io;
    if (time.waiting > 0)
      for (const auto& [who, ns] : time.waiting_for) Wait(who, ns * waiting / time.waiting, begin_ns, end_ns);
    if (time.network > 0)
      for (const auto& [who, ns] : time.sent_by) {
        const double share = ns * network / time.network;
        who.IsZero() ? Network(share, begin_ns, end_ns) : Wait(who, share, begin_ns, end_ns);
      }
    states[State::kUnexplained] += open;
  }

  void RunQueue(const ThreadTime& time, double factor) {
    RunQueue(time, factor, account_.states, account_.behind);
  }
  void RunQueue(const ThreadTime& time, double factor, Account& states,
                std::map<Id128, double>& behind) const {
    for (const auto& [who, ns] : time.behind) {
      const bool own = program_.family.contains(who);
      states[own ? State::kRunQueueOwn : State::kRunQueue] += factor * ns;
      behind[who] += factor * ns;
    }
  }

  void Loaders() {
    Account& states = account_.loaders;
    for (const Id128& loader : program_.loaders) {
      const std::optional<int32_t> thread = BusiestOf(loader);
      if (!thread.has_value()) continue;
      const ThreadTime time = host_.Of(loader, *thread, from_ns_, to_ns_);
      const double interrupted = std::min(time.interrupted, time.running);
      const double reclaim = std::min(time.reclaim, time.running - interrupted + time.blocked);
      const double reclaim_on_cpu = std::min(reclaim, time.running - interrupted);
      states[State::kInterrupted] += interrupted;
      states[State::kReclaim] += reclaim;
      states[State::kLoader] += time.running - interrupted - reclaim_on_cpu;
      states[State::kBlocked] += time.blocked - (reclaim - reclaim_on_cpu);
      states[State::kBlockedIo] += time.blocked_io;
      states[State::kNetwork] += time.network;
      RunQueue(time, 1, states, account_.loaders_behind);
    }
  }

  // `ns` of waiting for somebody: what that one did at the time.
  void Wait(const Id128& who, double ns, int64_t begin_ns, int64_t end_ns) {
    if (ns <= 0) return;
    Account& states = account_.states;
    if (program_.feeders.contains(who)) {
      WaitForRank(who, ns, begin_ns, end_ns, 0);
      return;
    }
    if (!program_.family.contains(who)) {
      states[State::kWaiting] += ns;
      account_.idle[State::kWaiting] += ns;
      return;
    }
    const std::optional<int32_t> thread = BusiestOf(who);
    const ThreadTime time = thread.has_value() ? host_.Of(who, *thread, begin_ns, end_ns) : ThreadTime{};
    const double known = time.total();
    if (known <= 0) {
      states[State::kWaiting] += ns;
      return;
    }
    const double factor = ns / known;
    const double interrupted = std::min(time.interrupted, time.running);
    const double reclaim = std::min(time.reclaim, time.running - interrupted + time.blocked);
    const double reclaim_on_cpu = std::min(reclaim, time.running - interrupted);
    states[State::kInterrupted] += factor * interrupted;
    states[State::kReclaim] += factor * reclaim;
    states[State::kLoader] += factor * (time.running - interrupted - reclaim_on_cpu);
    RunQueue(time, factor);
    states[State::kBlocked] += factor * (time.blocked - (reclaim - reclaim_on_cpu));
    states[State::kBlockedIo] += factor * time.blocked_io;
    states[State::kSleeping] += factor * time.sleeping;
    states[State::kWaiting] += factor * time.waiting;
    Network(factor * time.network, begin_ns, end_ns);
  }

  // `ns` of waiting for a packet from nobody known: while packets of the job wait for a device, for that.
  void Network(double ns, int64_t begin_ns, int64_t end_ns) {
    if (ns <= 0) return;
    const auto queued_of = [&](const Id128& process) {
      return host_.SumOf(model::Metric::kNetworkQueued, process, begin_ns, end_ns).value_or(0);
    };
    double queued = 0;
    for (const Id128& member : program_.family) queued = std::max(queued, queued_of(member));
    for (const Id128& rank : program_.ranks) queued = std::max(queued, queued_of(rank));
    account_.states[State::kNetworkQueue] += std::min(queued, ns);
    account_.states[State::kNetwork] += ns - std::min(queued, ns);
    account_.idle[State::kNetwork] += ns - std::min(queued, ns);
  }

  // `ns` of waiting for another rank: what that one did at the time, and where it waited for a third, that
  // one.
  void WaitForRank(const Id128& who, double ns, int64_t begin_ns, int64_t end_ns, int depth) {
    const auto feeder = program_.feeders.find(who);
    const ThreadTime time = host_.Of(who, feeder->second, begin_ns, end_ns);
    // Two don't wait for each other: where it waited for this program, this one didn't wait for it.
    double known = time.total();
    for (const auto* waits : {&time.waiting_for, &time.sent_by})
      if (const auto mine = waits->find(program_.process); mine != waits->end()) known -= mine->second;
    if (known <= 0) {
      Network(ns, begin_ns, end_ns);
      return;
    }
    const double factor = ns / known;
    double own = known;
    for (const auto* waits : {&time.waiting_for, &time.sent_by})
      for (const auto& [other, waited] : *waits) {
        if (other == program_.process || other == who) continue;
        const bool is_rank = program_.feeders.contains(other);
        const bool is_network = waits == &time.sent_by && other.IsZero();
        if (is_rank && depth < kLongestChain && factor * waited >= kLeastToFollowNs)
          WaitForRank(other, factor * waited, begin_ns, end_ns, depth + 1);
        else if (is_network)
          Network(factor * waited, begin_ns, end_ns);
        else
          continue;
        own -= waited;
      }
    if (own <= 0) return;
    account_.states[State::kPeer] += factor * own;
    AddRank(account_.ranks[who], time, factor, factor * own);
  }

  // What it did by itself in `ns`.
  void AddRank(RankAccount& rank, const ThreadTime& time, double factor, double ns) const {
    const double did = time.total() - time.waiting - time.network - time.sleeping;
    rank.idle += std::max(0.0, ns - factor * did);
    const double interrupted = std::min(time.interrupted, time.running);
    const double reclaim = std::min(time.reclaim, time.running - interrupted);
    rank.states[State::kInterrupted] += factor * interrupted;
    rank.states[State::kReclaim] += factor * reclaim;
    rank.states[State::kCpu] += factor * (time.running - interrupted - reclaim);
    rank.states[State::kBlocked] += factor * time.blocked;
    rank.states[State::kBlockedIo] += factor * time.blocked_io;
    rank.states[State::kSleeping] += factor * time.sleeping;
    RunQueue(time, factor, rank.states, rank.behind);
  }

  // Of the program's own process another one than the feeder: which of them ended a wait isn't told.
  std::optional<int32_t> BusiestOf(const Id128& process) {
    const auto [found, is_new] = busiest_.try_emplace(process);
    if (is_new)
      found->second =
          host_.BusiestThread(process, from_ns_, to_ns_,
                              process == program_.process ? std::optional(program_.feeder) : std::nullopt);
    return found->second;
  }

  // A throttled thread looks as if it waited for a CPU: behind nobody, or behind whoever ran there meanwhile.
  // Time is told of for all CPUs together, so it bounds what can be.
  static void Throttle(double throttled, Account& states, std::map<Id128, double>& behind) {
    const double waited = states[State::kRunQueue] + states[State::kRunQueueOwn];
    if (throttled <= 0 || waited <= 0) return;
    const double moved = std::min(throttled, waited);
    states[State::kThrottled] += moved;
    double left = moved;
    // Nobody is to blame for what has nobody's name on it.
    auto& nobody = behind[Id128{}];
    const double unnamed = std::min({nobody, left, states[State::kRunQueue]});
    nobody -= unnamed;
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

  // What was read and written takes so long at the cgroup's limit, whatever the device would give.
  static void ThrottleIo(double throttled, Account& states) {
    const double moved = std::min(throttled, states[State::kBlockedIo]);
    states[State::kBlockedIo] -= moved;
    states[State::kIoThrottled] += moved;
  }

  const Program& program_;
  const HostTimeline& host_;
  int64_t from_ns_, to_ns_;
  std::vector<Interval> syncs_, kernels_, copies_;
  std::map<Id128, std::optional<int32_t>> busiest_;
  PathAccount account_;
};

}  // namespace

PathAccount AccountFor(const Program& program, const HostTimeline& host, const GpuWork& gpu, int64_t from_ns,
                       int64_t to_ns) {
  return Accountant(program, host, gpu, from_ns, to_ns).Run();
}

void AccountForLoaders(const Program& program, const HostTimeline& host, int64_t from_ns, int64_t to_ns,
                       PathAccount& account) {
  PathAccount loaders = Accountant(program, host, {}, from_ns, to_ns).RunLoaders();
  account.loaders = loaders.loaders;
  account.loaders_behind = std::move(loaders.loaders_behind);
}

void PathAccount::Add(const PathAccount& other, double factor) {
  for (size_t i = 0; i < kStates; ++i) {
    states.ns[i] += factor * other.states.ns[i];
    idle.ns[i] += factor * other.idle.ns[i];
    loaders.ns[i] += factor * other.loaders.ns[i];
  }
  for (const auto& [who, rank] : other.ranks) {
    for (size_t i = 0; i < kStates; ++i) ranks[who].states.ns[i] += factor * rank.states.ns[i];
    ranks[who].idle += factor * rank.idle;
    for (const auto& [whom, ns] : rank.behind) ranks[who].behind[whom] += factor * ns;
  }
  for (const auto& [who, ns] : other.behind) behind[who] += factor * ns;
  for (const auto& [who, ns] : other.loaders_behind) loaders_behind[who] += factor * ns;
}

double PathAccount::TakeIdle() {
  const double taken = idle.total();
  for (size_t i = 0; i < kStates; ++i) states.ns[i] -= idle.ns[i];
  idle = {};
  return taken;
}

double CoveredNs(std::span<const Interval> intervals, int64_t from_ns, int64_t to_ns) {
  return LengthOf(UnionOf(intervals, from_ns, to_ns));
}

}  // namespace gpusonde::diagnose
