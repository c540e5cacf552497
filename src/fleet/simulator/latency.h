// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleet/roles/release.h"
#include "fleet/simulator/simulator.h"

namespace gpusonde::fleet {

struct Requests {
  uint64_t requests = 0;  // reports in an hour, and as many queries
  double report_us = 0;   // CPU time of one
  double query_us = 0;
  uint32_t servers = 1;  // cores, each with one request at a time
  uint64_t seed = 0;
};
struct Queueing {
  Latency report;
  Latency query;
  double busy = 0;  // share of the servers' time
};

// Reports and private queries that come at times drawn uniformly over an hour, served in the order of their
// arrival: how long each is there. The network's time is not in it.
Queueing SimulateRequests(const Requests& requests);

// The share of applications × groups that would be shown if noise had been drawn for other ε of a window: the
// true numbers of contributors, with other noise of the same number of draws.
std::vector<AtEpsilon> CoverageAtEpsilons(const std::vector<std::vector<uint64_t>>& truth,
                                          const Histograms& released, const Layout& layout,
                                          const Parameters& parameters);

}  // namespace gpusonde::fleet
