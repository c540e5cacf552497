// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diagnose/actors.h"
#include "diagnose/detector.h"
#include "diagnose/diagnosis.h"
#include "diagnose/forewarner.h"
#include "diagnose/habit.h"
#include "diagnose/step_finder.h"
#include "model/tables/evidence.h"
#include "model/tables/steps.h"

namespace gpusonde::diagnose {

// What all workloads read from and write to.
struct Diagnosis::Shared {
  // The state of a process's newest incident when it was last reported.
  struct LastReport {
    std::string cause;
    std::string because;
    int64_t start_ns = 0;
    std::optional<int64_t> end_ns;
  };

  HostTimeline host;
  Actors actors;
  Forewarner forewarner;
  // By process with GPU work: the thread that launches it.
  std::map<Id128, int32_t> launch_threads;
  std::map<Id128, LastReport> last_reports;
  model::BatchBuilder<decltype(model::kSteps)> steps{model::kSteps};
  model::BatchBuilder<decltype(model::kIncidents)> incidents{model::kIncidents};
  model::BatchBuilder<decltype(model::kEvidence)> evidence{model::kEvidence};
  model::BatchBuilder<decltype(model::kWarnings)> warnings{model::kWarnings};

  std::vector<model::Batch> DrainRows();
};

// A process that launches GPU work: its steps, their accounts, and its incidents. Not thread-safe.
class Diagnosis::Workload {
 public:
  Workload(const Id128& process, Shared& shared, std::function<void(const Report&)> report);

  void Ingest(const Work& work, std::optional<Id128> device);
  void CountThread(int32_t tid) { ++threads_[tid]; }
  void Ingest(const model::GpuSession& session);
  void Ingest(const model::Incident& incident) { earlier_incidents_.push_back(incident); }
  void MarkUnobserved(int64_t from_ns, int64_t to_ns);
  // Advances to `now_ns`. All rows older than `now_ns - allowed_lateness_ns` have arrived.
  void Advance(int64_t now_ns, int64_t allowed_lateness_ns);
  void Finish(int64_t time_ns);
  void Abandon(int64_t time_ns);
  // When its process ended, once all steps until then were evaluated; nullopt while it lives.
  std::optional<int64_t> ended_ns() const { return ended_ns_; }

  const std::vector<Report>& reports() const { return reports_; }
  int64_t steps() const { return ordinal_; }
  std::string anchor() const { return finder_.anchor().value_or(""); }
  // Whether an incident is open and the process still runs.
  bool is_slow() const;
  bool signals_known() const { return signals_known_; }
  bool waits_by_habit() const { return habit_.waits(); }
  int64_t late() const { return finder_.late(); }

 private:
  // A step is accounted for at once, and again when all signals of its threads have arrived: a signal is
  // emitted only when its state ends, and a loader may run for long.
  struct Accounted {
    StepSpan step;
    int64_t from_ns = 0;  // includes the idle time that Habit excludes from the step
    PathAccount path;
    bool complete = false;
    bool clean = false;
    bool slow = false;  // counted in slow_
  };

  // From `time_ns` on, its GPU work is observed, or is no longer.
  void SetObserved(int64_t time_ns, bool observed) { observation_changes_.emplace_back(time_ns, observed); }
  int32_t LaunchThread() const;
  int64_t UpdateWatermark(int64_t now_ns, int64_t allowed_lateness_ns);
  void ProcessUntil(int64_t time_ns);
  PathAccount AccountOf(int64_t from_ns, int64_t to_ns);
  Accounted Account(const StepSpan& span);
  void FindLoadersAndRanks(int64_t from_ns, int64_t to_ns);
  void ReaccountLoader(const Id128& loader);
  void AddStep(const StepSpan& span);
  void Restart();
  int64_t ExitedNs() const;  // INT64_MAX if it hasn't exited as far as is known
  void EndAt(int64_t time_ns);
  void CompleteAccounts(int64_t until_ns);
  void CompleteAccount(Accounted& accounted);
  void AddClean(const Accounted& accounted);
  void AddSlow(Accounted& accounted);
  void RemoveSlow(Accounted& accounted);
  void CheckUnfinished(int64_t now_ns);
  model::Incident NewIncident() const;
  void Begin();
  bool IsUpdateDue(int64_t now_ns) const;
  void Update(int64_t now_ns, bool unfinished);
  void Close();
  void WriteEnded(int64_t onset_ns, int64_t end_ns);
  Situation Describe(int64_t onset_ns, int64_t until_ns, bool unfinished) const;
  void DescribeRanks(const PathAccount& before, const PathAccount& during, double each,
                     Situation& situation) const;
  void WriteReport(const Situation& situation);

  Id128 process_;
  Shared& shared_;
  std::function<void(const Report&)> on_report_;
  StepFinder finder_;
  Detector detector_;
  Habit habit_;
  GpuWork gpu_;
  std::set<Id128> devices_;
  std::map<int32_t, int64_t> threads_;                        // API calls and ranges by thread
  std::deque<std::pair<int64_t, bool>> observation_changes_;  // those after the watermark
  Program program_;
  int64_t ordinal_ = 0;
  bool observed_ = true;
  int64_t observed_since_ns_ = 0;
  int32_t session_ = 0;
  bool signals_known_ = false;

  std::map<Id128, std::deque<Accounted>> clean_;  // the baseline, by step type
  int64_t clean_since_ns_ = 0;
  Interval calm_;                 // the baseline period before the incident
  std::deque<Accounted> recent_;  // the newest steps
  size_t incomplete_ = 0;         // how many of them, at the end, aren't complete
  // For the watermark: the newest time of GPU work, and for each recent round how far behind it the round's
  // oldest work was.
  int64_t newest_ns_ = 0;
  Interval round_{INT64_MAX, 0};  // times of the GPU work since the last Advance
  std::deque<int64_t> out_of_order_ns_;
  std::deque<int64_t> age_ns_;  // how old the oldest work of each recent round was
  int64_t watermark_ns_ = 0;
  int64_t now_ns_ = 0;
  std::optional<int64_t> ended_ns_;
  // The sum of the accounts of all steps since the onset, and their number by type.
  PathAccount slow_;
  double idle_ns_ = 0;
  std::map<Id128, int64_t> slow_types_;
  std::optional<int64_t> unfinished_ns_;  // length of the unfinished step if that overruns
  PathAccount unfinished_;
  int64_t updated_ns_ = 0;
  std::vector<Report> reports_;
  std::vector<model::Incident> earlier_incidents_;
};

}  // namespace gpusonde::diagnose
