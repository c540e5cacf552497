// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "diagnose/cause_id.h"
#include "diagnose/host_timeline.h"
#include "diagnose/indicator.h"
#include "model/tables/incidents.h"
#include "model/tables/warnings.h"

namespace gpusonde::diagnose {

// Warns when an indicator moves as it does before steps become slow (indicator.h), once per episode, and
// measures the lead time until an incident. Doesn't warn of what an open incident already reports. Not
// thread-safe.
class Forewarner {
 public:
  // Called for each new warning.
  using Warn = std::function<void(const model::Warning&)>;

  // Evaluates the indicators, at most once a second. `open` are the causes of incidents that are open now.
  // Returns the rows that are new or have changed.
  std::vector<model::Warning> Advance(const HostTimeline& host, const std::set<CauseId>& open, int64_t now_ns,
                                      const Warn& warn);

  // Links the warnings that predicted this incident of a program on these devices. Returns changed rows.
  std::vector<model::Warning> Ingest(const model::Incident& incident, const std::set<Id128>& devices);

  // Ends what is open: nobody will. Returns the changed rows.
  std::vector<model::Warning> Abandon();

  // The last state of all warnings, by start time; the newest are kept.
  const std::list<model::Warning>& warnings() const { return warnings_; }

 private:
  struct Known {
    std::list<model::Warning>::iterator warning;
    int64_t last_ns = 0;
  };
  using OpenWarnings = std::map<std::pair<std::string_view, Id128>, Known>;

  model::Warning Open(const Indicator& indicator, const Id128& device, const Sign& sign, int64_t now_ns);
  model::Warning Close(OpenWarnings::iterator known);

  OpenWarnings open_;
  std::list<model::Warning> warnings_;
  int64_t looked_ns_ = 0;
};

}  // namespace gpusonde::diagnose
