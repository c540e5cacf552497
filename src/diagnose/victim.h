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

#include "diagnose/detector.h"
#include "diagnose/diagnosis.h"
#include "diagnose/forewarner.h"
#include "diagnose/habit.h"
#include "diagnose/parties.h"
#include "diagnose/step_finder.h"
#include "model/tables/evidence.h"
#include "model/tables/steps.h"

namespace gpusonde::diagnose {

// What all victims look at, and write into.
struct Diagnosis::Shared {
  // What was said last of a program's steps.
  struct Told {
    std::string cause;
    std::string because;
    int64_t start_ns = 0;
    std::optional<int64_t> end_ns;
  };

  HostTimeline host;
  Parties parties;
  Forewarner forewarner;
  std::map<Id128, int32_t> feeders;  // processes with GPU work, and the thread that puts it there
  std::map<Id128, Told> told;
  model::BatchBuilder<decltype(model::kSteps)> steps{model::kSteps};
  model::BatchBuilder<decltype(model::kIncidents)> incidents{model::kIncidents};
  model::BatchBuilder<decltype(model::kEvidence)> evidence{model::kEvidence};
  model::BatchBuilder<decltype(model::kWarnings)> warnings{model::kWarnings};

  std::vector<model::Batch> TakeRows();
};

// One process that feeds a GPU: its steps, their accounts, and the incident that it is in. Not thread-safe.
class Diagnosis::Victim {
 public:
  Victim(const Id128& process, Shared& shared, std::function<void(const Report&)> tell);

  void Take(const Work& work, std::optional<Id128> device);
  void SawThread(int32_t tid) { ++threads_[tid]; }
  void Take(const model::GpuSession& session);
  void Take(const model::Incident& incident) { said_before_.push_back(incident); }
  void TakeUnobserved(int64_t from_ns, int64_t to_ns);
  // It is `now_ns`, and what is told of `lateness_ns` ago has been told.
  void Advance(int64_t now_ns, int64_t lateness_ns);
  void Finish(int64_t time_ns);
  void Abandon(int64_t time_ns);
  // Since when its process has ended, and it has been told; nothing while it lives.
  std::optional<int64_t> ended_ns() const { return ended_ns_; }

  const std::vector<Report>& reports() const { return reports_; }
  int64_t steps() const { return ordinal_; }
  std::string anchor() const { return finder_.anchor().value_or(""); }
  // Whether an incident is open, of a program that still runs.
  bool is_slow() const;
  bool signals_known() const { return signals_known_; }
  bool waits_by_habit() const { return habit_.waits(); }
  int64_t late() const { return finder_.late(); }

 private:
  // A step's account is drawn up at once, and again when all that its threads did has been told: a signal is
  // told of when it ends, and a loader may run for long.
  struct Accounted {
    StepSpan step;
    int64_t from_ns = 0;  // before the idle time that is no part of it
    PathAccount path;
    bool settled = false;
    bool clean = false;
    bool slow = false;  // within slow_
  };

  // Its GPU work is heard from this time on, or no longer.
  void Hear(int64_t time_ns, bool heard) { hearing_.emplace_back(time_ns, heard); }
  int32_t Feeder() const;
  int64_t SettledBefore(int64_t now_ns, int64_t lateness_ns);
  void LookUntil(int64_t time_ns);
  PathAccount AccountOf(int64_t from_ns, int64_t to_ns);
  Accounted Account(const StepSpan& span);
  void FindOthers(int64_t from_ns, int64_t to_ns);
  void LookAtLoadersAgain(const Id128& loader);
  void TakeStep(const StepSpan& span);
  void StartAnew();
  int64_t ExitedNs() const;  // INT64_MAX while it lives, or isn't known to have ended
  void EndAt(int64_t time_ns);
  void Settle(int64_t until_ns);
  void Settle(Accounted& accounted);
  void Remember(const Accounted& accounted);
  void AddSlow(Accounted& accounted);
  void RemoveSlow(Accounted& accounted);
  void LookAtUnfinished(int64_t now_ns);
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
  std::function<void(const Report&)> tell_;
  StepFinder finder_;
  Detector detector_;
  Habit habit_;
  GpuWork gpu_;
  std::set<Id128> devices_;
  std::map<int32_t, int64_t> threads_;            // calls and ranges by thread
  std::deque<std::pair<int64_t, bool>> hearing_;  // not yet Advance'd over
  Program program_;
  int64_t ordinal_ = 0;
  bool heard_ = true;
  int64_t heard_since_ns_ = 0;
  int32_t session_ = 0;
  bool signals_known_ = false;

  std::map<Id128, std::deque<Accounted>> clean_;  // by type
  int64_t clean_since_ns_ = 0;
  Interval calm_;                 // before the incident
  std::deque<Accounted> recent_;  // newest steps
  size_t unsettled_ = 0;          // of them, the last ones
  // Of the times of work: the newest, and how far the next round's reached behind it, lately.
  int64_t newest_ns_ = 0;
  Interval taken_{INT64_MAX, 0};  // since the last Advance
  std::deque<int64_t> disorder_ns_;
  std::deque<int64_t> age_ns_;  // of the oldest work of a round
  int64_t settled_ns_ = 0;
  int64_t now_ns_ = 0;
  std::optional<int64_t> ended_ns_;
  // Of the steps since the onset: their accounts, and how many there were of each type.
  PathAccount slow_;
  double idle_ns_ = 0;
  std::map<Id128, int64_t> slow_types_;
  std::optional<int64_t> unfinished_ns_;  // length of the unfinished step that is overrunning
  PathAccount unfinished_;
  int64_t updated_ns_ = 0;
  std::vector<Report> reports_;
  std::vector<model::Incident> said_before_;
};

}  // namespace gpusonde::diagnose
