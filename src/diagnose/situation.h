// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "diagnose/account.h"
#include "model/metric_catalogue.h"

namespace gpusonde::diagnose {

// Who somebody is, as far as a person wants to know: processes of the same name in the same cgroup are one.
struct Party {
  std::string name;
  std::string cgroup;
  bool own = false;  // of the slow program itself
  // Which process it is; 0 and nothing where it is several, or not known. No part of a party's identity.
  int32_t pid = 0;
  std::string command;

  auto operator<=>(const Party& other) const {
    return std::tie(name, cgroup, own) <=> std::tie(other.name, other.cgroup, other.own);
  }
  bool operator==(const Party& other) const { return (*this <=> other) == 0; }
};

// How much of something each party had.
using Shares = std::map<Party, double>;

// Adds to the party's share.
void AddShare(Shares& shares, const Party& party, double amount);

// A value before the incident and during it; nothing where it wasn't measured.
struct Change {
  std::optional<double> before;
  std::optional<double> during;

  bool known() const { return before.has_value() && during.has_value(); }
  double rise() const { return known() ? *during - *before : 0; }
};

// Another rank that the program waited for: means over its steps, ns.
struct RankPart {
  std::string name;  // "python (process 412)"
  Account before, during;
  double idle_before = 0, idle_during = 0;  // it slept, or waited itself for nobody known
  Shares cpu_before, cpu_during;
  // What is said of its own steps, if they are slow too: a cause's name, and the sentence.
  std::string cause;
  std::string because;

  double rise() const { return during.total() - before.total(); }
  double idle_rise() const { return std::max(0.0, idle_during - idle_before); }
};

// All that a cause may look at.
struct Situation {
  int64_t onset_ns = 0;
  double slowdown = 1;
  // Means over steps, ns: of clean ones of the same types, and of those since the onset.
  Account before, during;
  // The longest time of one step in which its path waited for somebody who did nothing.
  double idle_ns = 0;
  bool unfinished = false;          // no step has ended since the onset
  int64_t silent_ns = 0;            // since the last work of the GPU
  bool signals_known = false;       // whether the host's signals of the program were seen at all
  Shares cpu_before, cpu_during;    // ns of a step that the critical path waited behind whom
  Shares disk_before, disk_during;  // bytes a second
  // Likewise, of what had to queue for a network device; `own` are the ranks of the program's job too.
  Shares network_before, network_during;
  // TCP segments a second that the program, or another rank of its job, had to send again.
  Change retransmits;
  std::vector<RankPart> ranks;
  // How long the loaders ran, whoever waited; ns of a step.
  double loader_cpu_before = 0, loader_cpu_during = 0;
  // How long all of the program's threads ran, ns of a second.
  Change own_cpu;
  // Values by metric of the catalogue: sums as shares or amounts a second, gauges as means.
  std::map<model::Metric, Change> signals;
  // Share of a GPU's time (%) that other processes took, by who.
  std::map<std::string, Change> neighbours;
  std::vector<int64_t> xids;  // during

  double excess_ns() const { return during.total() - before.total(); }
  // The sum of the states that have grown; the excess is what is left of it by those that have shrunk.
  double lost_ns() const {
    double sum = 0;
    for (size_t i = 0; i < kStates; ++i) sum += std::max(0.0, during.ns[i] - before.ns[i]);
    return sum;
  }
  double excess(State state) const { return during[state] - before[state]; }
  Change Of(model::Metric metric) const {
    const auto found = signals.find(metric);
    return found == signals.end() ? Change{} : found->second;
  }
};

}  // namespace gpusonde::diagnose
