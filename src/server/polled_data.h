// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "server/api.h"
#include "server/shared_read.h"

namespace gpusonde::server {

// What several answers to a polling page read: its summary reads the devices and the profile of GPU time,
// which the page shows as well. Thread-safe.
struct PolledReads {
  SharedRead<std::vector<store::DeviceUse>> devices{
      [](const std::vector<store::DeviceUse>& read) { return read.size() <= 100; }};
  // About 1 MB: a profile of weeks is read again rather than kept.
  SharedRead<model::Profile> gpu_profile{
      [](const model::Profile& read) { return read.samples.size() + read.locations.size() <= 10'000; }};
};

// `data` as of a revision, for answers to polls. Within a revision an answer may be older than the data: a
// client with an ETag of that revision doesn't get newer answers either. Thread-safe, as `data` is; the
// arguments must outlive it.
class PolledData final : public ApiData {
 public:
  PolledData(ApiData& data, PolledReads& reads, uint64_t revision)
      : data_(data), reads_(reads), revision_(revision) {}

  Result<std::vector<store::DeviceUse>> ReadDeviceUse(const model::Selection& selection) override {
    return reads_.devices.Read(revision_, selection, [&] { return data_.ReadDeviceUse(selection); });
  }
  Result<model::Profile> ReadGpuProfile(const model::Selection& selection) override {
    return reads_.gpu_profile.Read(revision_, selection, [&] { return data_.ReadGpuProfile(selection); });
  }

  uint64_t Revision() override { return revision_; }
  Result<store::Overview> ReadOverview() override { return data_.ReadOverview(); }
  Result<std::vector<store::Overview::SourceInfo>> ReadSources() override { return data_.ReadSources(); }
  Result<bool> HasCpuSamples(const model::Selection& selection) override {
    return data_.HasCpuSamples(selection);
  }
  Result<store::Strip> ReadCpuStrip(const model::Selection& selection, int buckets) override {
    return data_.ReadCpuStrip(selection, buckets);
  }
  Result<std::vector<store::ProcessUse>> ReadProcesses(const model::Selection& selection) override {
    return data_.ReadProcesses(selection);
  }
  Result<model::Profile> ReadProfile(const model::Selection& selection) override {
    return data_.ReadProfile(selection);
  }
  Result<std::vector<store::DeviceStrip>> ReadGpuStrips(const model::Selection& selection,
                                                        int buckets) override {
    return data_.ReadGpuStrips(selection, buckets);
  }
  Result<std::vector<store::MetricStrip>> ReadMetricStrips(const model::Selection& selection,
                                                           int buckets) override {
    return data_.ReadMetricStrips(selection, buckets);
  }
  Result<std::vector<store::MetricMean>> ReadMetricMeans(const model::Selection& selection,
                                                         std::span<const model::Metric> metrics) override {
    return data_.ReadMetricMeans(selection, metrics);
  }
  Result<store::DeviceMarks> ReadDeviceMarks(const model::Selection& selection, int buckets) override {
    return data_.ReadDeviceMarks(selection, buckets);
  }
  Result<std::optional<std::vector<model::LaunchThreadPart>>> ReadLaunchThreadsWhileIdle(
      const model::Selection& selection) override {
    return data_.ReadLaunchThreadsWhileIdle(selection);
  }
  Result<std::vector<store::GpuUser>> ReadGpuUsers(const model::Selection& selection) override {
    return data_.ReadGpuUsers(selection);
  }
  Result<usage::Usage> ReadUsage(const model::Selection& selection, const usage::SumBy& by) override {
    return data_.ReadUsage(selection, by);
  }
  Result<bool> NamesFile(const std::string& file) override { return data_.NamesFile(file); }
  Result<compare::Run> ReadRun(const model::Selection& selection, const std::string& name) override;
  Result<store::Incidents> ReadIncidents(const model::Selection& selection, int buckets) override {
    return data_.ReadIncidents(selection, buckets);
  }
  Result<store::Tracks> ReadTracks(const model::Selection& selection,
                                   const store::TracksOptions& options) override {
    return data_.ReadTracks(selection, options);
  }
  Result<std::optional<store::LaunchedWork>> ReadWork(const store::WorkPlace& place) override {
    return data_.ReadWork(place);
  }
  Result<fleet::Observations> ReadObservations(const model::Selection& selection) override {
    return data_.ReadObservations(selection);
  }

 private:
  ApiData& data_;
  PolledReads& reads_;
  uint64_t revision_;
};

}  // namespace gpusonde::server
