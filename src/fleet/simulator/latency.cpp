// SPDX-License-Identifier: Apache-2.0
#include "fleet/simulator/latency.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "fleet/privacy/budget.h"
#include "fleet/privacy/gaussian.h"
#include "fleet/roles/message.h"
#include "fleet/simulator/seeds.h"

namespace gpusonde::fleet {
namespace {

Latency Quantiles(std::vector<double>& sojourns_us) {
  if (sojourns_us.empty()) return {};
  std::ranges::sort(sojourns_us);
  const auto at = [&](double share) {
    return sojourns_us[static_cast<size_t>(share * static_cast<double>(sojourns_us.size() - 1))] / 1e3;
  };
  return {.p50_ms = at(0.5), .p90_ms = at(0.9), .p99_ms = at(0.99)};
}

// The noise for which one window costs ε.
uint64_t SigmaFor(double epsilon, double delta) {
  double low = 1;
  double high = 1e7;
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    (privacy::Epsilon(privacy::Rho(privacy::kSensitivity, middle), delta) > epsilon ? low : high) = middle;
  }
  return static_cast<uint64_t>(std::ceil(high));
}

}  // namespace

Queueing SimulateRequests(const Requests& requests) {
  struct Arrival {
    double time_us;
    bool is_query;
  };
  privacy::Random random = SeededRandom(requests.seed, "arrivals");
  std::vector<Arrival> arrivals;
  for (uint64_t i = 0; i < requests.requests; ++i) {
    arrivals.push_back({3600e6 * DrawUnit(random), false});
    if (requests.query_us > 0) arrivals.push_back({3600e6 * DrawUnit(random), true});
  }
  std::ranges::sort(arrivals, {}, &Arrival::time_us);
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (uint32_t i = 0; i < requests.servers; ++i) free_at.push(0);
  std::vector<double> reports;
  std::vector<double> queries;
  double busy_us = 0;
  for (const Arrival& arrival : arrivals) {
    const double service_us = arrival.is_query ? requests.query_us : requests.report_us;
    const double done_us = std::max(free_at.top(), arrival.time_us) + service_us;
    free_at.pop();
    free_at.push(done_us);
    busy_us += service_us;
    (arrival.is_query ? queries : reports).push_back(done_us - arrival.time_us);
  }
  return {.report = Quantiles(reports),
          .query = Quantiles(queries),
          .busy = busy_us / (3600e6 * requests.servers)};
}

std::vector<AtEpsilon> CoverageAtEpsilons(const std::vector<std::vector<uint64_t>>& truth,
                                          const Histograms& released, const Layout& layout,
                                          const Parameters& parameters) {
  std::vector<AtEpsilon> points;
  privacy::Random random = SeededRandom(parameters.seed, "other noise");
  for (const double epsilon : {0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    AtEpsilon point{.epsilon = epsilon, .sigma = SigmaFor(epsilon, parameters.delta)};
    uint64_t shown = 0;
    for (uint32_t application = 0; application < parameters.applications; ++application) {
      for (uint32_t group = 0; group < layout.groups; ++group) {
        const uint32_t place = application / kApplicationsPerPage * layout.groups + group;
        const uint64_t contributors = truth[place][application % kApplicationsPerPage];
        if (contributors == 0) continue;
        const double deviation = NoiseDeviation(point.sigma, released.answers(place));
        const auto noise =
            privacy::DrawGaussian(static_cast<uint64_t>(std::llround(std::max(deviation, 1.0))), random);
        const double seen =
            static_cast<double>(contributors) + static_cast<double>(noise) / privacy::kReportWeight;
        shown += seen > ReleaseThreshold(point.sigma, released.answers(place));
      }
    }
    point.released_coverage =
        static_cast<double>(shown) / static_cast<double>(uint64_t{layout.groups} * parameters.applications);
    points.push_back(point);
  }
  return points;
}

}  // namespace gpusonde::fleet
