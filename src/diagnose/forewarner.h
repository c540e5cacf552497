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
#include "diagnose/host_timeline.h"
#include "diagnose/indicator.h"
#include "model/tables/incidents.h"
#include "model/tables/warnings.h"

namespace gpusonde::diagnose {

// Warns while signals move as they do before steps slow (indicator.h), once for each time, and measures how
// long before the steps did that was. What an open incident is told of already is no warning. Not
// thread-safe.
class Forewarner {
 public:
  // Called for a new warning.
  using Warn = std::function<void(const model::Warning&)>;

  // It is `now_ns`; looks once a second. `open` are causes of incidents that are open now. Returns the rows
  // that are new or have changed.
  std::vector<model::Warning> Advance(const HostTimeline& host, const std::set<std::string>& open,
                                      int64_t now_ns, const Warn& warn);

  // An incident of a program on these devices has this cause now.
  std::vector<model::Warning> Take(const model::Incident& incident, const std::set<Id128>& devices);

  // The last state of each, by their beginning; of very many the newest.
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
