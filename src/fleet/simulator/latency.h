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

// Simulates reports and private queries at random times in an hour, served in order of arrival: the latency
// of each, without network time.
Queueing SimulateRequests(const Requests& requests);

// The share of applications × groups that would be shown with noise for another ε per window: the true
// numbers of contributors with new noise of the same number of draws.
std::vector<AtEpsilon> CoverageAtEpsilons(const std::vector<std::vector<uint64_t>>& truth,
                                          const Histograms& released, const Layout& layout,
                                          const Parameters& parameters);

}  // namespace gpusonde::fleet
