// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/accounted_step.h"
#include "diagnose/actors.h"
#include "diagnose/clean_baseline.h"
#include "diagnose/critical_path.h"
#include "diagnose/habit.h"
#include "diagnose/host_timeline.h"
#include "diagnose/launch_thread.h"
#include "diagnose/step_finder.h"

namespace gpusonde::diagnose {

// By process with GPU work: the thread that launches it.
using LaunchThreads = std::map<Id128, int32_t>;

// Accounts for the steps of one program: once when a step has ended, and again when all signals of its
// threads have arrived. Finds the program's loaders and the ranks of its job on the way. Complete accounts of
// clean steps go to the baseline; those of slow steps are summed. Times are ns since the epoch. Not
// thread-safe.
class Accounting {
 public:
  // All must outlive it.
  Accounting(const Id128& process, const HostTimeline& host, const Actors& actors, CleanBaseline& baseline);

  // GPU work, or waits for it.
  void Ingest(Work::Kind kind, std::span<const WorkTime> times);
  // The same of another loop of the process.
  void IngestOfOtherLoop(Work::Kind kind, std::span<const WorkTime> times);
  // An API call or a range of this thread, which may be the launch thread.
  void CountThread(int32_t tid, int64_t time_ns) { launch_thread_.Ingest(tid, time_ns); }
  // This thread launches no work of this program's steps.
  void ForgetThread(int32_t tid) { launch_thread_.Forget(tid); }

  // Updates the program's processes, its launch thread and those of others before steps are added.
  void UpdateProgram(const LaunchThreads& launch_threads);
  const Program& program() const { return program_; }
  int32_t usual_launch_thread() const { return usual_launch_thread_; }

  // Accounts for a step that has ended. `slow`: it belongs to an incident.
  const AccountedStep& Add(const StepSpan& span, bool slow);
  // The step added last is clean. Returns true if it shows the habit of waiting for requests, or ends it:
  // then steps added before aren't comparable with later ones.
  bool MarkClean();
  // The same for a step that may turn out to be slow: it doesn't join the baseline.
  bool MarkSuspect();
  // Accounts for the time since the last step's end, so far.
  PathAccount AccountUnfinished(int64_t from_ns, int64_t to_ns) {
    return AccountOf(usual_launch_thread_, {from_ns, to_ns});
  }

  // Accounts anew for slow steps of which more signals may have arrived. Returns the end of the last step all
  // of whose signals have; 0 if there is none.
  int64_t RefreshKnown();

  // Accounts for the last time for all steps that ended until then, as all signals of them have arrived.
  void CompleteUntil(int64_t until_ns);

  // Steps since the onset are slow, and their accounts are summed from now on; later ones are added if they
  // are slow.
  void BeginSlow(int64_t onset_ns);
  // Returns the sum over all slow steps that started before `until_ns`.
  StepSum SlowUntil(int64_t until_ns) const;
  // Returns the sum over the slow steps that started in [from_ns, until_ns) and are remembered.
  StepSum SlowWithin(int64_t from_ns, int64_t until_ns) const;
  // Returns the start of the `count` last slow steps that started before `until_ns`; 0 if fewer are
  // remembered.
  int64_t StartOfLastSlow(int64_t count, int64_t until_ns) const;

  // Returns when the time in the states `first` gave way to that in `second` within this time: the start of
  // the slow step from which on most of the latter and least of the former was spent. Nullopt if neither
  // gave way.
  std::optional<int64_t> ChangeBetween(std::span<const State> first, std::span<const State> second,
                                       const TimeRange& within) const;

  // Forgets the steps.
  void Clear();
  // Drops GPU work that ended before this time, as far as no incomplete account needs it.
  void ForgetGpuWorkBefore(int64_t time_ns);

  // The type of the step added last; zero if there is none.
  Id128 last_type() const { return recent_.empty() ? Id128{} : recent_.back().step.type; }
  bool waits_by_habit() const { return habit_.waits(); }

 private:
  PathAccount AccountOf(int32_t launch_thread, const TimeRange& step);
  void JoinAdded();
  GpuWork GpuWorkIn(const TimeRange& range) const;
  void FindLoadersAndRanks(const TimeRange& step);
  void AddLoader(const Id128& who);
  void ReaccountLoader(const Id128& loader);
  void Refresh(AccountedStep& accounted);
  void Complete(AccountedStep& accounted);
  void AddSlow(AccountedStep& accounted);
  void RemoveSlow(AccountedStep& accounted);
  bool HasSignals(const AccountedStep& accounted) const;
  void DropUnlessOnly(AccountedStep& accounted);
  void SumUp(const AccountedStep& slow);

  Id128 process_;
  const HostTimeline& host_;
  const Actors& actors_;
  CleanBaseline& baseline_;
  LaunchThread launch_thread_;
  int32_t usual_launch_thread_ = 0;
  Program program_;
  GpuWork added_;  // in any order, not in gpu_ yet
  GpuWork gpu_;    // disjoint ranges
  Habit habit_;
  StepTime last_time_;                // of the step added last, with the waits for requests
  std::deque<AccountedStep> recent_;  // the newest steps
  size_t incomplete_ = 0;             // how many of them, at the end, aren't complete
  // The sum of some slow steps that are no longer among the newest.
  struct EarlierSlow {
    int64_t from_ns;  // the start of the first of them
    StepSum sum;
  };
  std::deque<EarlierSlow> earlier_;  // of the last seconds
  StepSum slow_;                     // all, these included
};

}  // namespace gpusonde::diagnose
