// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "fleet/private_match.h"
#include "fleet/roles/aggregator.h"
#include "fleet/roles/draw.h"
#include "fleet/roles/release.h"
#include "fleet/simulator/applications.h"
#include "fleet/simulator/simulated_fleet.h"
#include "fleet/simulator/simulator.h"
#include "fleet/simulator/world.h"

namespace gpusonde::fleet {

// The epoch of the first simulated hour.
inline constexpr uint32_t kFirstEpoch = 1000;

// A run of a simulation: in each hour, findings of devices are reported, added, released and compared with
// the truth, which only the simulation knows.
class SimulationRun {
 public:
  SimulationRun(const Parameters& parameters, const ApplicationMix& mix, ReportKind kind,
                SimulatedFleet fleet);

  Status PassHour(const Progress& progress);
  // The totals over the hours.
  Run Finish();

 private:
  // The state of a worker.
  struct Worker {
    explicit Worker(Intake taken) : intake(std::move(taken)) {}

    Intake intake;
    std::map<Intake::Place, std::vector<uint64_t>> plain;
    Identification identification;
    int64_t make_ns = 0;
    int64_t accept_ns = 0;
  };
  // A list: the received reports, and their true sum.
  struct Cohort {
    Intake::Place place;
    privacy::ReportList list;
    Gathered gathered;
    std::vector<uint64_t> plain;
  };

  bool IsCheat(size_t place) const { return cheats_.contains(place); }
  Status Churn(Hour& hour);
  Beacon DrawBeacon() const;
  Status Gather(const Beacon& beacon, Hour& hour, const Progress& progress, std::vector<Cohort>& cohorts);
  Status ReportOf(size_t place, const Beacon& beacon, privacy::Random& random, Worker& worker);
  Status AskInPrivate();
  Status ReleaseAll(std::vector<Cohort> cohorts, const DrawnEpoch& draw, Hour& hour);
  Result<privacy::NoisySum> Open(Cohort& cohort, std::vector<privacy::MaskAnswer> masks,
                                 std::span<const privacy::Polynomial> shares) const;
  void Compare(const Cohort& cohort, const privacy::NoisySum& sum);
  void Cover(Hour& hour) const;

  Parameters parameters_;
  const ApplicationMix& mix_;
  ReportKind kind_;
  Layout layout_;
  SimulatedFleet fleet_;
  World world_;
  PrivateCatalog private_catalog_;
  std::unordered_map<size_t, int> cheats_;  // by place: the kind of cheating
  uint32_t epoch_;
  Run run_;

  Histograms released_;
  std::vector<std::vector<uint64_t>> truth_;  // contributors of released sums, by place and row
  std::vector<uint8_t> sampled_;              // by group and application: in a released sum
  Suspects suspects_;
  std::unordered_map<uint64_t, uint64_t> windows_;  // of each device: how often released

  int64_t make_ns_ = 0;
  int64_t accept_ns_ = 0;
  int64_t answer_ns_ = 0;
  int64_t query_ns_ = 0;
  int64_t query_server_ns_ = 0;
  uint64_t reports_ = 0;
  uint64_t answered_ = 0;  // reports × decryptors
  int64_t compare_ns_ = 0;
  double pipeline_s_ = 0;
  double release_s_ = 0;
};

}  // namespace gpusonde::fleet
