// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id128.h"
#include "diagnose/collective_groups.h"
#include "diagnose/late_rank.h"
#include "diagnose/report.h"
#include "diagnose/straggler_detector.h"

namespace gpusonde::diagnose {

// Incidents of jobs whose ranks report their collectives (NCCL's profiler plugin): ranks that hang in one,
// and ranks that come last. An incident's process is the rank that the others wait for; its sentence says
// what that rank's host did meanwhile. Not thread-safe.
class CollectiveIncidents {
 public:
  // An incident has begun or ended, or its cause on the host has become known.
  using Emit = std::function<void(const Report& report)>;

  void Ingest(const model::Communicator& row) { groups_.Ingest(row); }
  void Ingest(const model::Collective& row) { groups_.Ingest(row); }

  // Evaluates at most once a second of `now_ns`; calls in between do nothing.
  void Advance(int64_t now_ns, const RankContext& context, const Emit& emit);
  // Ends all open incidents at `now_ns`: their programs are no longer observed.
  void Abandon(int64_t now_ns, const Emit& emit);

  // The last state of all incidents, in the order of their begin; the newest are kept.
  const std::vector<Report>& reports() const { return reports_; }
  // The ranks on this machine.
  std::vector<Id128> Processes() const { return groups_.Processes(); }

 private:
  struct Found;
  struct Open {
    Id128 incident;
    int64_t found_ns = 0;  // when it was last found
  };
  void Update(const Found& found, int64_t now_ns, const RankContext& context, const Emit& emit);
  void End(const Id128& incident, int64_t end_ns, const Emit& emit);
  Report* Find(const Id128& incident);

  CollectiveGroups groups_;
  StragglerDetector stragglers_;
  int64_t evaluated_ns_ = 0;
  std::map<std::string, Open> open_;  // by kind and communicator
  std::vector<Report> reports_;
};

}  // namespace gpusonde::diagnose
