// SPDX-License-Identifier: Apache-2.0
#include "fleet/simulator/simulator.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "fleet/characteristics.h"
#include "fleet/simulator/applications.h"
#include "fleet/simulator/run.h"
#include "fleet/simulator/simulated_fleet.h"

namespace gpusonde::fleet {
namespace {

Status Check(const Parameters& p, std::span<const KernelStream> streams) {
  const auto wants = [](bool holds, const char* what) -> Status {
    if (holds) return {};
    return Fail(ErrorCode::kInvalidArgument, fmt::format("simulation: {}", what));
  };
  TRY(wants(!streams.empty(), "it needs kernel streams"));
  TRY(wants(p.devices > 0 && p.devices <= 10'000'000, "devices must be from 1 to 10,000,000"));
  TRY(wants(p.hours > 0 && p.hours <= 24 * 366, "hours must be from 1 to 8,784"));
  TRY(wants(p.applications > 0 && p.applications <= 10'000, "applications must be from 1 to 10,000"));
  TRY(wants(p.unknown_applications <= 10'000, "unknown applications must be at most 10,000"));
  TRY(wants(p.load > 0 && p.load < 1, "the load must be between 0 and 1"));
  // Shorter ones would be gone before a device observes them, and be millions.
  TRY(wants(p.job_hours >= 0.01 && p.job_hours <= 10'000, "job hours must be from 0.01 to 10,000"));
  TRY(wants(p.zipf >= 0 && p.zipf <= 10, "Zipf's exponent must be from 0 to 10"));
  TRY(wants(p.unknown_share >= 0 && p.unknown_share <= 1, "the share of unknown jobs must be from 0 to 1"));
  TRY(wants(p.churn >= 0 && p.churn <= 1, "churn must be from 0 to 1"));
  TRY(wants(p.groups > 0 && p.groups <= OpenCharacteristics(), "groups must be from 1 to 8"));
  TRY(wants(p.cohorts > 0 && p.cohorts <= 10'000, "cohorts must be from 1 to 10,000"));
  TRY(wants(p.min_reports <= 10'000'000, "a cohort's smallest number of reports must be at most 10,000,000"));
  TRY(wants(p.decryptors > 0 && p.decryptors <= 7, "decryptors must be from 1 to 7"));
  TRY(wants(p.cheats <= p.devices, "cheats can't be more than devices"));
  TRY(wants(p.epsilon > 0 && p.epsilon <= 1000,
            "the budget must be an epsilon above 0 and at most 1,000; 14.8 is enough for 183 hours"));
  TRY(wants(!p.dead_hour.has_value() || *p.dead_hour < p.hours,
            "the dead hour must be one of the hours, the first of which is 0"));
  return wants(p.servers > 0 && p.node_cores > 0 && p.threads > 0,
               "servers, cores and threads must be at least 1");
}

}  // namespace

Result<Simulated> Simulate(const Parameters& parameters, std::span<const KernelStream> streams,
                           const Progress& progress) {
  TRY(Check(parameters, streams));
  Simulated simulated{.parameters = parameters, .streams = {}, .runs = {}};
  for (const KernelStream& stream : streams) simulated.streams.push_back(stream.source);
  static_cast<void>(progress("making applications", 0));
  const ApplicationMix mix(streams, parameters.applications, parameters.unknown_applications, parameters.seed,
                           parameters.threads);
  for (const ReportKind kind : parameters.reports) {
    const auto begin = std::chrono::steady_clock::now();
    auto fleet = SimulatedFleet::Create(parameters, kind, kFirstEpoch, progress);
    // Stopped meanwhile: the runs so far are kept.
    simulated.stopped = !fleet.has_value() && fleet.error().code == ErrorCode::kUnavailable;
    if (simulated.stopped && !simulated.runs.empty()) break;
    if (!fleet.has_value()) return Fail(std::move(fleet).error());
    SimulationRun run(parameters, mix, kind, *std::move(fleet));
    for (uint32_t hour = 0; hour < parameters.hours && !simulated.stopped; ++hour) {
      TRY(run.PassHour([&](std::string_view what, double share) {
        return progress(what, (hour + share) / parameters.hours);
      }));
      simulated.stopped =
          !progress("reporting", (hour + 1.0) / parameters.hours) && hour + 1 < parameters.hours;
    }
    simulated.runs.push_back(run.Finish());
    simulated.runs.back().measured.wall_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (simulated.stopped) break;
  }
  return simulated;
}

}  // namespace gpusonde::fleet
