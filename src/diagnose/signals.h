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

// Where signals are looked up, and between when.
struct SignalScope {
  const Id128& process;
  const Program& program;
  const std::set<Id128>& devices;
  const HostTimeline& host;
  const Parties& parties;
  Interval calm, incident;
};

// Fills in all of a situation that isn't accounts: the host's signals, who used disks and networks, and what
// the program's GPUs said of themselves.
void DescribeSignals(const SignalScope& scope, Situation& situation);

}  // namespace gpusonde::diagnose
