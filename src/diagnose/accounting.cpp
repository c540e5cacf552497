// SPDX-License-Identifier: Apache-2.0
#include "diagnose/accounting.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "base/nearly_sorted.h"
#include "diagnose/detector_table.h"
#include "diagnose/incident_table.h"
#include "model/signal_bucket.h"

namespace gpusonde::diagnose {
namespace {

constexpr size_t kMaxRecent = 400;  // steps
// Of slow steps before those, sums over so long are kept for so long: an incident's end is found seconds
// later.
constexpr int64_t kSumNs = 100 * kNanosPerMilli;
constexpr int64_t kSumsKeptNs = 2 * kDetector.calm.ns;

constexpr std::array kGpuWork = {&GpuWork::kernels, &GpuWork::copies, &GpuWork::syncs,
                                 &GpuWork::of_other_loops, &GpuWork::syncs_of_other_loops};

void Append(std::span<const WorkTime> times, std::vector<TimeRange>& ranges) {
  for (const WorkTime& time : times) ranges.push_back({time.end_ns - time.length_ns, time.end_ns});
}

// Joins the ranges of `added` to disjoint ones, sorted by time. Work comes nearly in the order of time, so
// that only the last of these change.
void Join(std::vector<TimeRange> added, std::vector<TimeRange>& disjoint) {
  if (added.empty()) return;
  SortNearlySorted(added, &TimeRange::from_ns);
  const auto touched = std::ranges::lower_bound(disjoint, added.front().from_ns, {}, &TimeRange::to_ns);
  added.insert(added.end(), touched, disjoint.end());
  std::ranges::inplace_merge(added, added.end() - (disjoint.end() - touched), {}, &TimeRange::from_ns);
  disjoint.erase(touched, disjoint.end());
  for (const TimeRange& range : added) AppendToUnion(range, disjoint);
}

}  // namespace

Accounting::Accounting(const Id128& process, const HostTimeline& host, const Actors& actors,
                       CleanBaseline& baseline)
    : process_(process), host_(host), actors_(actors), baseline_(baseline) {
  program_.process = process;
}

void Accounting::Ingest(Work::Kind kind, std::span<const WorkTime> times) {
  if (kind == Work::Kind::kRange) return;
  Append(times, kind == Work::Kind::kKernel ? added_.kernels
                : kind == Work::Kind::kCopy ? added_.copies
                                            : added_.syncs);
}

void Accounting::IngestOfOtherLoop(Work::Kind kind, std::span<const WorkTime> times) {
  if (kind == Work::Kind::kRange) return;
  Append(times, kind == Work::Kind::kSync ? added_.syncs_of_other_loops : added_.of_other_loops);
}

void Accounting::UpdateProgram(const LaunchThreads& launch_threads) {
  // Descendants count as the program's own.
  program_.family = actors_.FamilyOf(process_);
  const model::Process* row = actors_.Find(process_);
  program_.main_thread = row == nullptr ? 0 : row->pid;
  usual_launch_thread_ = launch_thread_.Usual().value_or(program_.main_thread);
  program_.launch_threads = launch_threads;
  program_.launch_threads.erase(process_);
  // Forget ended processes.
  std::erase_if(program_.loaders, [&](const Id128& loader) { return !program_.family.contains(loader); });
  std::erase_if(program_.ranks, [&](const Id128& rank) { return !program_.launch_threads.contains(rank); });
}

PathAccount Accounting::AccountOf(int32_t launch_thread, const TimeRange& step) {
  program_.launch_thread = launch_thread;
  FindLoadersAndRanks(step);
  JoinAdded();
  return AccountFor(program_, host_, GpuWorkIn(step), step);
}

void Accounting::JoinAdded() {
  for (const auto of : kGpuWork) Join(std::exchange(added_.*of, {}), gpu_.*of);
}

// The work that runs in the range, and the waits in the buckets that overlap it. Of a busy program some
// seconds are kept, tens of thousands of kernels.
GpuWork Accounting::GpuWorkIn(const TimeRange& range) const {
  GpuWork within;
  for (const auto of : kGpuWork) {
    const std::vector<TimeRange>& all = gpu_.*of;
    const int64_t around_ns = of == &GpuWork::syncs ? model::kSignalBucketNs : 0;
    const auto first = std::ranges::upper_bound(all, range.from_ns - around_ns, {}, &TimeRange::to_ns);
    const auto last =
        std::ranges::lower_bound(first, all.end(), range.to_ns + around_ns, {}, &TimeRange::from_ns);
    (within.*of).assign(first, last);
  }
  return within;
}

// Adds the processes that the launch thread waited for to the loaders or ranks. If it waited for another
// thread of its process, adds the processes that the other threads waited for.
void Accounting::FindLoadersAndRanks(const TimeRange& step) {
  const ThreadTime time = host_.Of(process_, program_.launch_thread, step);
  for (const ThreadState state : kWaitStates)
    for (const auto& [who, ns] : time.By(state)) {
      if (ns <= 0) continue;
      if (who == process_)
        for (const auto& [other, waited] : host_.WaitsOfOthers(process_, step, program_.launch_thread))
          AddLoader(other);
      else if (program_.launch_threads.contains(who))
        program_.ranks.insert(who);
      else
        AddLoader(who);
    }
}

void Accounting::AddLoader(const Id128& who) {
  if (who == process_ || program_.launch_threads.contains(who) || !program_.family.contains(who)) return;
  if (program_.loaders.insert(who).second) ReaccountLoader(who);
}

// A process that the program waits for for the first time was a loader before, so the steps since it started
// are accounted for again. It may have started just now, if the program starts one for each step.
void Accounting::ReaccountLoader(const Id128& loader) {
  const model::Process* row = actors_.Find(loader);
  const int64_t since_ns = row == nullptr ? 0 : row->started_ns;
  const auto reaccount = [&](AccountedStep& accounted) {
    if (accounted.step.end_ns <= since_ns) return;
    program_.launch_thread = accounted.launch_thread;
    AccountForLoaders(program_, host_, {accounted.from_ns, accounted.step.end_ns}, accounted.path);
  };
  const int32_t launch_thread = program_.launch_thread;
  baseline_.ForEach(reaccount);
  for (AccountedStep& accounted : recent_) {
    const bool was_slow = accounted.slow;
    if (was_slow) RemoveSlow(accounted);
    reaccount(accounted);
    if (was_slow) AddSlow(accounted);
  }
  program_.launch_thread = launch_thread;
}

// Excludes the wait for a request, which precedes the work on it.
const AccountedStep& Accounting::Add(const StepSpan& span, bool slow) {
  const TimeRange range{span.start_ns, span.end_ns};
  const int32_t launch_thread = launch_thread_.Of(range).value_or(usual_launch_thread_);
  AccountedStep accounted{.step = span,
                          .from_ns = span.start_ns,
                          .launch_thread = launch_thread,
                          .path = AccountOf(launch_thread, range)};
  const PathAccount& path = accounted.path;
  double outside_ns = 0;
  for (const auto& [who, ns] : path.waited_outside) outside_ns += ns;
  last_time_ = {.total_ns = path.states.total(),
                .idle_ns = path.idle.total(),
                .asleep_ns = path.launch_thread_asleep,
                .others_asleep_ns = path.others_asleep(),
                .outside_ns = outside_ns,
                .packets_ns = path.packets};
  if (habit_.waits()) {
    const auto idle_ns = static_cast<int64_t>(accounted.path.RemoveIdle(habit_.waits_for_sleepers()));
    accounted.step.start_ns = std::min(span.start_ns + idle_ns, span.end_ns - 1);
  }
  recent_.push_back(std::move(accounted));
  ++incomplete_;
  if (recent_.size() > kMaxRecent) {
    if (!recent_.front().complete) Complete(recent_.front());
    if (recent_.front().slow) SumUp(recent_.front());
    recent_.pop_front();
  }
  if (slow) AddSlow(recent_.back());
  return recent_.back();
}

void Accounting::SumUp(const AccountedStep& slow) {
  const int64_t start_ns = slow.step.start_ns;
  if (earlier_.empty() || start_ns >= earlier_.back().from_ns + kSumNs) earlier_.push_back({start_ns, {}});
  earlier_.back().sum.Add(slow);
  while (earlier_.front().from_ns < start_ns - kSumsKeptNs) earlier_.pop_front();
}

bool Accounting::MarkClean() {
  recent_.back().clean = true;
  // Ranks wait for each other; no request would come for one of them alone.
  return program_.ranks.empty() && habit_.Learn(last_time_);
}

bool Accounting::MarkSuspect() { return program_.ranks.empty() && habit_.LearnSuspect(last_time_); }

void Accounting::CompleteUntil(int64_t until_ns) {
  while (incomplete_ > 0) {
    AccountedStep& oldest = recent_[recent_.size() - incomplete_];
    if (oldest.step.end_ns > until_ns) break;
    Complete(oldest);
  }
}

void Accounting::Refresh(AccountedStep& accounted) {
  const bool was_slow = accounted.slow;
  if (was_slow) RemoveSlow(accounted);
  accounted.path = AccountOf(accounted.launch_thread, {accounted.from_ns, accounted.step.end_ns});
  if (habit_.waits()) accounted.path.RemoveIdle(habit_.waits_for_sleepers());
  if (was_slow) AddSlow(accounted);
}

void Accounting::Complete(AccountedStep& accounted) {
  Refresh(accounted);
  accounted.complete = true;
  const std::optional<int64_t> known_since_ns = host_.KnownSince(process_, accounted.launch_thread);
  accounted.observed = known_since_ns.has_value() && *known_since_ns <= accounted.from_ns;
  --incomplete_;
  if (accounted.clean) baseline_.Add(accounted);
  if (accounted.slow && accounted.observed && !HasSignals(accounted)) DropUnlessOnly(accounted);
}

// After a restart of the agent, GPU work is observed before host signals are: its steps are no evidence.
bool Accounting::HasSignals(const AccountedStep& accounted) const {
  const TimeRange range{accounted.from_ns, accounted.step.end_ns};
  return host_.Of(process_, accounted.launch_thread, range).total() > 0;
}

// Takes a step out of the sum of slow ones, unless it is the only one.
void Accounting::DropUnlessOnly(AccountedStep& accounted) {
  int64_t steps = 0;
  for (const auto& [type, count] : slow_.types) steps += count;
  if (steps > 1) RemoveSlow(accounted);
}

int64_t Accounting::RefreshKnown() {
  int64_t end_ns = 0;
  for (AccountedStep& accounted : recent_) {
    if (accounted.step.end_ns > host_.KnownUntil(process_, accounted.launch_thread)) break;
    if (!accounted.complete && accounted.slow) Refresh(accounted);
    end_ns = accounted.step.end_ns;
  }
  return end_ns;
}

void Accounting::AddSlow(AccountedStep& accounted) {
  accounted.slow = true;
  slow_.Add(accounted);
}

void Accounting::RemoveSlow(AccountedStep& accounted) {
  accounted.slow = false;
  slow_.Remove(accounted);
}

void Accounting::BeginSlow(int64_t onset_ns) {
  slow_ = {};
  std::erase_if(earlier_, [&](const EarlierSlow& part) { return part.from_ns < onset_ns; });
  for (const EarlierSlow& part : earlier_) slow_.Add(part.sum);
  for (AccountedStep& accounted : recent_) {
    accounted.clean &= accounted.step.end_ns <= onset_ns;
    accounted.slow = false;
    if (accounted.step.start_ns >= onset_ns) AddSlow(accounted);
  }
}

StepSum Accounting::SlowUntil(int64_t until_ns) const {
  StepSum sum = slow_;
  for (const AccountedStep& accounted : recent_ | std::views::reverse) {
    if (accounted.step.start_ns < until_ns) break;
    if (accounted.slow) sum.Remove(accounted);
  }
  for (const EarlierSlow& part : earlier_)
    if (part.from_ns >= until_ns) sum.Remove(part.sum);
  sum.path.states.DropNegative();
  sum.path.loaders.DropNegative();
  return sum;
}

StepSum Accounting::SlowWithin(int64_t from_ns, int64_t until_ns) const {
  StepSum sum;
  for (const EarlierSlow& part : earlier_)
    if (part.from_ns >= from_ns && part.from_ns < until_ns) sum.Add(part.sum);
  for (const AccountedStep& accounted : recent_ | std::views::reverse) {
    if (accounted.step.start_ns < from_ns) break;
    if (accounted.slow && accounted.step.start_ns < until_ns) sum.Add(accounted);
  }
  return sum;
}

int64_t Accounting::StartOfLastSlow(int64_t count, int64_t until_ns) const {
  for (const AccountedStep& accounted : recent_ | std::views::reverse)
    if (accounted.slow && accounted.step.start_ns < until_ns && --count == 0) return accounted.step.start_ns;
  return 0;
}

std::optional<int64_t> Accounting::ChangeBetween(std::span<const State> first, std::span<const State> second,
                                                 const TimeRange& within) const {
  struct Times {
    int64_t start_ns;
    double first_ns, second_ns;
  };
  std::vector<Times> steps;
  double first_ns = 0, second_ns = 0;
  const auto add = [&](int64_t start_ns, const Account& states) {
    if (start_ns < within.from_ns || start_ns >= within.to_ns) return;
    const auto sum = [&](std::span<const State> of) {
      double ns = 0;
      for (const State state : of) ns += states[state];
      return ns;
    };
    steps.push_back({start_ns, sum(first), sum(second)});
    first_ns += steps.back().first_ns;
    second_ns += steps.back().second_ns;
  };
  for (const EarlierSlow& part : earlier_) add(part.from_ns, part.sum.path.states);
  for (const AccountedStep& accounted : recent_)
    if (accounted.slow) add(accounted.step.start_ns, accounted.path.states);
  if (first_ns <= 0 || second_ns <= 0) return std::nullopt;
  double share = 0, most = kIncidentTable.replaced.change;
  std::optional<int64_t> change_ns;
  for (const Times& step : steps | std::views::reverse) {
    share += step.second_ns / second_ns - step.first_ns / first_ns;
    if (share <= most) continue;
    most = share;
    change_ns = step.start_ns;
  }
  return change_ns;
}

void Accounting::Clear() {
  recent_.clear();
  earlier_.clear();
  incomplete_ = 0;
}

void Accounting::ForgetGpuWorkBefore(int64_t time_ns) {
  if (incomplete_ > 0)
    time_ns = std::min(time_ns, recent_[recent_.size() - incomplete_].from_ns - model::kSignalBucketNs);
  JoinAdded();
  for (const auto of : kGpuWork)
    (gpu_.*of).erase((gpu_.*of).begin(), std::ranges::upper_bound(gpu_.*of, time_ns, {}, &TimeRange::to_ns));
}

}  // namespace gpusonde::diagnose
