// SPDX-License-Identifier: Apache-2.0
#include "compare/run.h"
#include "fleet/observe/observe.h"
#include "importers/sonde/selected.h"
#include "server/api.h"

namespace gpusonde::server {
namespace {

// Of each side: two of 2.9 M took 8 to 22 s (a synthetic trace of 5.8 M kernels, 2 cores, 26 Nov 2026).
constexpr int64_t kMaxComparedWork = 3'000'000;

class StoreData final : public ApiData {
 public:
  explicit StoreData(store::Store& store) : store_(store) {}

  uint64_t Revision() override { return store_.revision(); }
  Result<store::Overview> ReadOverview() override { return store::ReadOverview(store_); }
  Result<std::vector<store::Overview::SourceInfo>> ReadSources() override {
    return store::ReadSources(store_);
  }
  Result<bool> HasCpuSamples(const model::Selection& selection) override {
    store::Store& recent = Of(selection);
    ASSIGN_OR_RETURN(const bool any, store::HasCpuSamples(recent));
    return any || &recent == &store_ ? any : store::HasCpuSamples(store_);
  }
  Result<store::Strip> ReadCpuStrip(const model::Selection& selection, int buckets) override {
    return store::ReadCpuStrip(Of(selection), selection, buckets);
  }
  Result<std::vector<store::ProcessUse>> ReadProcesses(const model::Selection& selection) override {
    return store::ReadProcesses(Of(selection), selection);
  }
  Result<model::Profile> ReadProfile(const model::Selection& selection) override {
    return store::ReadProfile(Of(selection), selection);
  }
  Result<model::Profile> ReadGpuProfile(const model::Selection& selection) override {
    return store::ReadGpuProfile(Of(selection), selection);
  }
  Result<std::vector<store::DeviceStrip>> ReadGpuStrips(const model::Selection& selection,
                                                        int buckets) override {
    return store::ReadGpuStrips(Of(selection), selection, buckets);
  }
  Result<std::vector<store::MetricStrip>> ReadMetricStrips(const model::Selection& selection,
                                                           int buckets) override {
    return store::ReadMetricStrips(Of(selection), selection, buckets);
  }
  Result<std::vector<store::MetricMean>> ReadMetricMeans(const model::Selection& selection,
                                                         std::span<const model::Metric> metrics) override {
    return store::ReadMetricMeans(Of(selection), selection, metrics);
  }
  Result<store::DeviceMarks> ReadDeviceMarks(const model::Selection& selection, int buckets) override {
    return store::ReadDeviceMarks(Of(selection), selection, buckets);
  }
  Result<std::vector<store::DeviceUse>> ReadDeviceUse(const model::Selection& selection) override {
    return store::ReadDeviceUse(Of(selection), selection);
  }
  Result<std::optional<std::vector<model::LaunchThreadPart>>> ReadLaunchThreadsWhileIdle(
      const model::Selection& selection) override {
    return store::ReadLaunchThreadsWhileIdle(Of(selection), selection);
  }
  Result<std::vector<store::GpuUser>> ReadGpuUsers(const model::Selection& selection) override {
    return store::ReadGpuUsers(Of(selection), selection);
  }
  Result<usage::Usage> ReadUsage(const model::Selection& selection, const usage::SumBy& by) override {
    return usage::ReadUsage(store_, selection, by);
  }
  Result<bool> NamesFile(const std::string& file) override { return store::NamesFile(store_, file); }
  Result<compare::Run> ReadRun(const model::Selection& selection, const std::string& name) override {
    ASSIGN_OR_RETURN(const auto trace,
                     importers::sonde::OpenSelected(Of(selection), selection, kMaxComparedWork));
    // One thread: on a machine that is profiled, a page must not take more.
    return compare::ReadRun(*trace, name, {.threads = 1});
  }
  Result<store::Incidents> ReadIncidents(const model::Selection& selection, int buckets) override {
    return store::ReadIncidents(store_, selection, buckets);
  }
  Result<store::Tracks> ReadTracks(const model::Selection& selection,
                                   const store::TracksOptions& options) override {
    return store::ReadTracks(Of(selection), selection, options);
  }
  Result<std::optional<store::LaunchedWork>> ReadWork(const store::WorkPlace& place) override {
    return store::ReadLaunchedWork(store_.Within({place.start_ns, place.start_ns + 1}), place);
  }
  Result<fleet::Observations> ReadObservations(const model::Selection& selection) override {
    return fleet::Observe(Of(selection), selection);
  }

 private:
  store::Store& Of(const model::Selection& selection) {
    return store_.Within({selection.from_ns, selection.to_ns});
  }

  store::Store& store_;
};

}  // namespace

std::unique_ptr<ApiData> ReadingFrom(store::Store& store) { return std::make_unique<StoreData>(store); }

}  // namespace gpusonde::server
