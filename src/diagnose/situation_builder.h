// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/id128.h"
#include "diagnose/accounted_step.h"
#include "diagnose/actors.h"
#include "diagnose/cause_id.h"
#include "diagnose/clean_baseline.h"
#include "diagnose/critical_path.h"
#include "diagnose/gpu_time_by_name.h"
#include "diagnose/host_timeline.h"
#include "diagnose/situation.h"

namespace gpusonde::diagnose {

// The newest incident of a process when it was last reported.
struct LastReport {
  std::optional<CauseId> cause;
  std::string because;  // the sentence of its first cause
  int64_t onset_ns = 0;
  double step_ns = 0;  // mean length of its slow steps
  std::optional<int64_t> end_ns;
};

// A step that has not ended: its account so far, and its type, as far as that can be guessed.
struct UnfinishedStep {
  PathAccount path;
  Id128 type;
};

// An incident of a workload between two times, ns since the epoch.
struct IncidentView {
  int32_t tid = 0;
  int64_t onset_ns = 0;
  int64_t until_ns = 0;
  StepSum slow;  // the steps that began between the two
  std::optional<UnfinishedStep> unfinished;
  double slowdown = 1;  // as detected; the accounts' is preferred
  int64_t last_work_ns = 0;
  bool signals_known = false;    // whether any host signals of the workload were received
  bool before_is_later = false;  // the baseline is of steps after it
};

// What an incident is compared with and explained by, and usual steps are found in.
struct SituationContext {
  const Program& program;
  const std::set<Id128>& devices;  // those that the program uses
  const CleanBaseline& baseline;
  const HostTimeline& host;
  const Actors& actors;
  const std::map<Id128, LastReport>& last_reports;  // by process
  const GpuTimeByName& gpu_time;
};

// Time per step by actor, of time by process in all steps.
Shares SharesOf(const std::map<Id128, double>& by_process, double per_step, const SituationContext& context);

// Puts the baseline and the incident side by side: per-step means of the accounts, and host signals.
Situation BuildSituation(const IncidentView& incident, const SituationContext& context);

}  // namespace gpusonde::diagnose
