// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/kernel_stream.h"
#include "fleet/privacy/budget.h"
#include "fleet/roles/aggregator.h"
#include "fleet/roles/report.h"

// A fleet in one process, with the code of every role: each report is really encrypted, signed, verified,
// added and released; only the devices' work and time are simulated. docs/fleet/simulator.md describes the
// results.
namespace gpusonde::fleet {

struct Parameters {
  uint64_t devices = 1000;
  uint32_t hours = 1;  // of simulated time; an epoch and release window each
  uint64_t seed = 1;
  std::vector<ReportKind> reports = {ReportKind::kMasked};  // one run each, of the same fleet

  uint32_t applications = 61;          // in the catalog
  uint32_t unknown_applications = 20;  // that aren't
  double unknown_share = 0.05;         // of jobs
  double zipf = 1;
  double load = 0.1;  // share of devices that are busy
  double job_hours = 4;
  double churn = 0.005;  // share of devices replaced each hour

  uint32_t groups = 8;  // of characteristics, at most OpenCharacteristics()
  uint32_t cohorts = 8;
  uint32_t decryptors = 3;
  uint64_t min_reports = 1000;
  uint64_t sigma = privacy::kNoiseSigma;
  double epsilon = 14.8;  // a device's budget
  double delta = 1e-9;

  uint32_t cheats = 3;                // a third each corrupt sums, sign wrongly, and report twice
  std::optional<uint32_t> dead_hour;  // in which one decryptor doesn't answer
  uint32_t private_queries = 20;      // really computed each hour

  uint32_t look_kernels = 20'000;  // that a device observes in an hour
  uint32_t node_cores = 8;         // CPU cores of a node, for each of its GPUs
  uint32_t servers = 2;            // the aggregator's cores, for latencies
  int threads = 1;
};

struct Hour {
  uint64_t devices = 0;
  uint64_t enrolled = 0;
  double busy_share = 0;
  std::array<uint64_t, kVerdicts> verdicts{};
  uint64_t lists = 0;
  uint64_t lists_too_small = 0;
  uint64_t lists_unanswered = 0;  // a decryptor was dead, or refused
  uint64_t lists_refused = 0;     // out of balance
  uint64_t expelled = 0;          // devices, after this hour
  uint64_t expelled_honest = 0;   // of them, those that never cheated
  double sampled_coverage = 0;    // since the beginning
  double released_coverage = 0;
  uint64_t released_falsely = 0;  // rows shown that nobody contributed to
};

struct AtEpsilon {
  double epsilon = 0;  // of one window
  uint64_t sigma = 0;
  double released_coverage = 0;
};

struct Identification {
  uint64_t known = 0;
  uint64_t known_right = 0;
  uint64_t known_wrong = 0;  // taken for another; the rest was called unknown
  uint64_t unknown = 0;
  uint64_t unknown_right = 0;
  uint64_t private_queries = 0;
  uint64_t private_agreed = 0;  // with the public way
  uint64_t signatures = 0;      // unknown applications found spreading
  uint64_t signatures_true = 0;
};

struct ErrorOfSums {
  uint64_t slots = 0;
  uint64_t largest_before_noise = 0;  // must be 0
  double largest_deviations = 0;      // of the noise, in standard deviations
  double within_two_deviations = 0;   // share of slots; 0.954 of a Gaussian
};

struct Budgets {
  double epsilon_window = 0;
  double epsilon_spent = 0;   // by the devices that were released most often
  uint64_t windows = 0;       // that those took part in
  uint64_t windows_left = 0;  // of the device, and at the decryptor, that has the fewest
};

struct Latency {
  double p50_ms = 0;
  double p90_ms = 0;
  double p99_ms = 0;
};

// CPU and wall time on this machine: the only difference between two runs with the same seed.
struct Measured {
  double wall_s = 0;
  double enrol_us = 0;  // per device, with the decryptors' part
  double report_us = 0;
  double accept_us = 0;
  double answer_us = 0;  // per report and decryptor
  double look_us = 0;    // per device and hour
  double match_us = 0;   // in the open
  double query_us = 0;   // the device's part of a private query
  double query_server_us = 0;
  double pipeline_s = 0;    // wall time per hour of making, verifying, adding and releasing all reports
  double release_s = 0;     // of that from the last report to the last release
  double device_share = 0;  // of a node's cores, with a private query
  double device_share_public = 0;  // without
  Latency report_latency;          // from a report's arrival to its acknowledgement
  Latency query_latency;
  double servers_busy = 0;
};

struct Run {
  ReportKind kind = ReportKind::kMasked;
  uint64_t report_bytes = 0;
  uint64_t query_bytes = 0;
  uint64_t answer_bytes = 0;
  std::vector<Hour> hours;
  std::vector<AtEpsilon> at_epsilon;
  Identification identification;
  ErrorOfSums error;
  Budgets budgets;
  Measured measured;
};

struct Simulated {
  Parameters parameters;
  std::vector<std::string> streams;
  std::vector<Run> runs;
  bool stopped = false;
};

// Reports the progress, 0 to 1; returning false ends the simulation after the current hour.
using Progress = std::function<bool(std::string_view what, double share)>;

// Errors: kInvalidArgument for parameters that make no sense, with their name.
Result<Simulated> Simulate(const Parameters& parameters, std::span<const KernelStream> streams,
                           const Progress& progress);

// One line, keys as docs/fleet/simulator.md lists them. All but "measured" is the same for the same
// parameters.
std::string ToJson(const Simulated& simulated);
// What a person wants to know, in a dozen lines a run.
std::string ToText(const Simulated& simulated);
// One page with everything in it.
std::string ToHtml(const Simulated& simulated);

}  // namespace gpusonde::fleet
