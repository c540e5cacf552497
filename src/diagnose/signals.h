// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "base/id128.h"
#include "diagnose/critical_path.h"
#include "diagnose/host_timeline.h"
#include "diagnose/parties.h"
#include "diagnose/situation.h"

namespace gpusonde::diagnose {

// Where signals are looked up, and between when: [before, from) is calm, [from, to) the incident.
struct SignalScope {
  const Id128& process;
  const Program& program;
  const std::set<Id128>& devices;
  const HostTimeline& host;
  const Parties& parties;
  int64_t before_ns = 0;
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

// Fills in all of a situation that isn't accounts: the host's signals, who used disks and networks, and what
// the program's GPUs said of themselves.
void DescribeSignals(const SignalScope& scope, Situation& situation);

}  // namespace gpusonde::diagnose
