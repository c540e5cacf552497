// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/time_range.h"
#include "diagnose/accounting.h"
#include "diagnose/actors.h"
#include "diagnose/clean_baseline.h"
#include "diagnose/collective_incidents.h"
#include "diagnose/detector.h"
#include "diagnose/diagnosis.h"
#include "diagnose/forewarner.h"
#include "diagnose/gpu_time_by_name.h"
#include "diagnose/host_timeline.h"
#include "diagnose/incident_tracker.h"
#include "diagnose/situation_builder.h"
#include "diagnose/step_finder.h"
#include "diagnose/step_kinds.h"
#include "diagnose/usual_step.h"
#include "model/tables/evidence.h"
#include "model/tables/steps.h"
#include "model/tables/usual_steps.h"

namespace gpusonde::diagnose {

// What all workloads read from and write to.
struct Diagnosis::Shared {
  HostTimeline host;
  Actors actors;
  Forewarner forewarner;
  CollectiveIncidents collectives;
  LaunchThreads launch_threads;
  std::map<Id128, LastReport> last_reports;  // by process
  model::BatchBuilder<decltype(model::kSteps)> steps{model::kSteps};
  model::BatchBuilder<decltype(model::kIncidents)> incidents{model::kIncidents};
  model::BatchBuilder<decltype(model::kEvidence)> evidence{model::kEvidence};
  model::BatchBuilder<decltype(model::kWarnings)> warnings{model::kWarnings};
  model::BatchBuilder<decltype(model::kUsualSteps)> usual_steps{model::kUsualSteps};

  // Emits the rows of an incident of a process that uses these devices, whose slow steps take `step_ns`.
  void Emit(const Report& report, double step_ns, const std::set<Id128>& devices);
  std::vector<model::Batch> DrainRows();
};

// A loop of a process that launches GPU work (loop_finder.h), and the pipeline from its rows to its
// incidents: each stage's output is the next one's input (docs/diagnose.md). Not thread-safe.
class Diagnosis::Workload {
 public:
  // The first loop of a process.
  Workload(const Id128& process, Shared& shared, const Options& options);
  // The loop of thread `tid` in the process of `first`, found later than that.
  Workload(const Workload& first, int32_t tid);

  // Ingests pieces of work that are alike but for their times. The times in `work` are not read.
  void Ingest(const Work& work, std::span<const WorkTime> times, const Id128& device);
  // The same of another loop of the process: the GPU is busy with it.
  void IngestOfOtherLoop(Work::Kind kind, std::span<const WorkTime> times) {
    accounting_.IngestOfOtherLoop(kind, times);
  }
  void CountThread(int32_t tid, int64_t time_ns) { accounting_.CountThread(tid, time_ns); }
  // This thread is another loop's.
  void ForgetThread(int32_t tid) { accounting_.ForgetThread(tid); }
  // Returns whether a session begins, whose rows may come from another agent than those before.
  bool Ingest(const model::GpuSession& session);
  void Ingest(const model::Incident& incident) { incidents_.Ingest(incident); }
  void MarkUnobserved(int64_t from_ns, int64_t to_ns);
  // Advances to `now_ns`. GPU work older than `watermark_ns` has arrived, and all rows older than
  // `now_ns - allowed_lateness_ns`.
  void Advance(int64_t now_ns, int64_t watermark_ns, int64_t allowed_lateness_ns);
  void Finish(int64_t time_ns);
  void Abandon(int64_t time_ns);
  // When its process ended, once all steps until then were evaluated; nullopt while it lives.
  std::optional<int64_t> ended_ns() const { return ended_ns_; }

  const std::vector<Report>& reports() const { return incidents_.reports(); }
  int32_t tid() const { return tid_; }  // 0: the first loop
  int64_t steps() const { return steps_; }
  UsualStep Usual() const;
  const StepKinds& kinds() const { return kinds_; }
  std::string anchor() const { return finder_.anchor().value_or(""); }
  // Whether an incident is open and the process still runs.
  bool is_slow() const;
  bool signals_known() const { return signals_known_; }
  bool waits_by_habit() const { return accounting_.waits_by_habit(); }
  int64_t late() const { return finder_.late(); }

 private:
  // A time at which observation of the workload's GPU work begins or ends.
  struct ObservationChange {
    int64_t time_ns = 0;
    bool begins = false;

    auto operator<=>(const ObservationChange&) const = default;
  };

  // When the process's GPU work is observed.
  struct Observation {
    std::deque<ObservationChange> changes;  // those after the watermark
    bool now = true;
    int64_t since_ns = 0;
    int32_t session = 0;
    int64_t session_end_ns = INT64_MAX;  // while it is not known
  };

  void BeginObserving(int64_t time_ns) { observation_.changes.push_back({time_ns, true}); }
  void EndObserving(int64_t time_ns) { observation_.changes.push_back({time_ns, false}); }
  int64_t ExitedNs() const;  // INT64_MAX if it hasn't exited as far as is known
  void ProcessUntil(int64_t time_ns);
  void ProcessToEnd(int64_t time_ns);
  void AddStep(const StepSpan& span);
  bool IsBeforeSignals(const StepSpan& step);
  bool HasGpuError(const TimeRange& when) const;
  void CheckUnfinished(int64_t now_ns);
  void Restart();
  void EndLastingDisturbance();
  void JudgeUsual();
  void Emit(const UsualStep& usual);
  void EndAt(int64_t time_ns);
  bool Hangs(int64_t since_ns, int64_t now_ns) const;
  void SplitHang(int64_t since_ns, int64_t now_ns);
  void BeginIncident();
  void UpdateIncident(int64_t time_ns);
  int64_t KnownUntil(int64_t time_ns);
  void SplitIfReplaced(int64_t until_ns);
  void MoveOnset(int64_t onset_ns);
  void Split(int64_t end_ns, int64_t onset_ns);
  void EndIncident(int64_t onset_ns, int64_t end_ns);
  SituationContext Context(const CleanBaseline& baseline) const;
  SituationContext Context() const { return Context(baseline_); }
  Situation SituationOf(int64_t onset_ns, int64_t until_ns, StepSum slow) const;
  // The causes of two parts of an incident.
  struct Replacement {
    const Cause* first;
    const Cause* second;
  };
  std::optional<Replacement> ReplacementOf(const TimeRange& first, const TimeRange& second) const;
  bool HasAnotherCause(int64_t onset_ns, int64_t until_ns) const;
  void Explain(int64_t onset_ns, int64_t until_ns, std::optional<int64_t> end_ns);
  // Explains the newest incident from `situation` and reports it.
  void Publish(const Situation& situation, std::optional<int64_t> end_ns);

  Id128 process_;
  int32_t tid_ = 0;
  Shared& shared_;
  Options options_;
  // The stages, in order.
  StepFinder finder_;
  GpuTimeByName gpu_time_;
  CleanBaseline baseline_;
  Accounting accounting_;
  Detector detector_;
  IncidentTracker incidents_;

  std::set<Id128> devices_;
  Observation observation_;
  bool signals_known_ = false;
  int64_t steps_ = 0;
  StepKinds kinds_;            // outside of incidents
  int64_t first_step_ns_ = 0;  // 0: there was none
  int64_t now_ns_ = 0;
  int64_t compared_ns_ = 0;                    // when clean steps were last compared with earlier ones
  std::optional<int64_t> disturbed_since_ns_;  // since when there has been a lasting disturbance
  int64_t judged_ns_ = 0;                      // when lasting disturbances were last looked for
  int64_t usual_ns_ = 0;                       // when rows of usual steps were last emitted
  std::optional<int64_t> ended_ns_;
  std::optional<UnfinishedStep> unfinished_;  // the step under way if it overruns
};

}  // namespace gpusonde::diagnose
