// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/actors.h"
#include "diagnose/critical_path.h"
#include "diagnose/host_timeline.h"
#include "diagnose/situation.h"

namespace gpusonde::diagnose {

// The program whose signals are read, and the two intervals that are compared.
struct SignalScope {
  const Program& program;
  const std::set<Id128>& devices;
  const HostTimeline& host;
  const Actors& actors;
  TimeRange calm, incident;
};

// Fills in all of a situation except the accounts: host signals, users of disks and networks, and the metrics
// of the workload's GPUs.
void DescribeSignals(const SignalScope& scope, Situation& situation);

}  // namespace gpusonde::diagnose
