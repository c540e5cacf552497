// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/run.h"
#include "server/api.h"

namespace gpusonde::server {

// Returns canned results and remembers the queries.
class FakeData final : public ApiData {
 public:
  uint64_t Revision() override { return revision; }
  Result<store::Overview> ReadOverview() override { return overview; }
  Result<std::vector<store::Overview::SourceInfo>> ReadSources() override {
    if (!overview.has_value()) return Fail(overview.error());
    return overview->sources;
  }
  Result<bool> HasCpuSamples(const model::Selection&) override {
    if (!overview.has_value()) return Fail(overview.error());
    return overview->samples > 0;
  }
  Result<store::Strip> ReadCpuStrip(const model::Selection& asked, int asked_buckets) override {
    selection = asked;
    buckets = asked_buckets;
    return strip;
  }
  Result<std::vector<store::ProcessUse>> ReadProcesses(const model::Selection& asked) override {
    selection = asked;
    return processes;
  }
  Result<model::Profile> ReadProfile(const model::Selection& asked) override {
    selection = asked;
    return asked.off_cpu && waits.has_value() ? *waits : profile;
  }
  Result<std::optional<std::vector<model::LaunchThreadPart>>> ReadLaunchThreadsWhileIdle(
      const model::Selection& asked) override {
    selection = asked;
    return launch_threads;
  }
  Result<std::vector<store::GpuUser>> ReadGpuUsers(const model::Selection& asked) override {
    selection = asked;
    return users;
  }
  Result<usage::Usage> ReadUsage(const model::Selection& asked, const usage::SumBy& by) override {
    selection = asked;
    return usage::Usage{
        .range = {1'000'000, 2'000'000}, .by = by, .groups = {{.name = "pod ml/a", .use = {}}}};
  }
  Result<compare::Run> ReadRun(const model::Selection& asked, const std::string&) override {
    selection = asked;
    return compare::Run{};
  }
  Result<fleet::Observations> ReadObservations(const model::Selection& asked) override {
    selection = asked;
    return observations;
  }
  Result<bool> NamesFile(const std::string& file) override { return file.ends_with(".py"); }

  Result<model::Profile> ReadGpuProfile(const model::Selection& asked) override {
    selection = asked;
    return gpu_profile;
  }
  Result<std::vector<store::DeviceStrip>> ReadGpuStrips(const model::Selection&, int) override {
    return gpu_strips;
  }
  Result<std::vector<store::MetricStrip>> ReadMetricStrips(const model::Selection&, int) override {
    return metric_strips;
  }
  Result<std::vector<store::MetricMean>> ReadMetricMeans(const model::Selection&,
                                                         std::span<const model::Metric>) override {
    return metric_means;
  }
  Result<store::DeviceMarks> ReadDeviceMarks(const model::Selection&, int) override { return marks; }
  Result<store::Incidents> ReadIncidents(const model::Selection& asked, int asked_buckets) override {
    selection = asked;
    buckets = asked_buckets;
    return incidents;
  }
  Result<store::Tracks> ReadTracks(const model::Selection& asked,
                                   const store::TracksOptions& asked_options) override {
    selection = asked;
    tracks_options = asked_options;
    return tracks;
  }
  Result<std::optional<store::LaunchedWork>> ReadWork(const store::WorkPlace& asked) override {
    place = asked;
    return work;
  }
  Result<std::vector<store::DeviceUse>> ReadDeviceUse(const model::Selection& asked) override {
    selection = asked;
    return devices;
  }

  uint64_t revision = 0;
  Result<store::Overview> overview;
  Result<model::Profile> gpu_profile;
  fleet::Observations observations;
  std::vector<store::DeviceStrip> gpu_strips;
  std::vector<store::MetricStrip> metric_strips;
  std::vector<store::MetricMean> metric_means;
  store::DeviceMarks marks;
  std::optional<std::vector<model::LaunchThreadPart>> launch_threads{std::in_place};
  std::vector<store::DeviceUse> devices;
  std::vector<store::GpuUser> users;
  store::Strip strip;
  std::vector<store::ProcessUse> processes;
  Result<model::Profile> profile;
  std::optional<model::Profile> waits;
  store::Incidents incidents;
  Result<store::Tracks> tracks;
  store::TracksOptions tracks_options;
  std::optional<store::LaunchedWork> work;
  store::WorkPlace place;
  model::Selection selection;
  int buckets = 0;
};

}  // namespace gpusonde::server
