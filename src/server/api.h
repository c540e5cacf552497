// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/observe/observation.h"
#include "model/profile.h"
#include "model/selection.h"
#include "server/http_message.h"
#include "server/source_folders.h"
#include "store/queries/gpu_query.h"
#include "store/queries/incident_query.h"
#include "store/queries/launch_threads.h"
#include "store/queries/metric_query.h"
#include "store/queries/profile_query.h"
#include "store/tracks/launched_work.h"
#include "store/tracks/tracks.h"
#include "usage/usage.h"

// GET /api/v1/…, /metrics and /readyz, as docs/api.md describes it.
namespace gpusonde::compare {
struct Run;
}

namespace gpusonde::server {

// The data that the API queries: the functions of store/queries/profile_query.h, gpu_query.h and
// metric_query.h. Thread-safe.
class ApiData {
 public:
  virtual ~ApiData() = default;
  // Changes whenever the result of some query may have changed.
  virtual uint64_t Revision() { return 0; }
  virtual Result<store::Overview> ReadOverview() = 0;
  virtual Result<std::vector<store::Overview::SourceInfo>> ReadSources() = 0;
  // Whether CPU time was sampled, perhaps at other times than the selection's.
  virtual Result<bool> HasCpuSamples(const model::Selection& selection) = 0;
  virtual Result<store::Strip> ReadCpuStrip(const model::Selection& selection, int buckets) = 0;
  virtual Result<std::vector<store::ProcessUse>> ReadProcesses(const model::Selection& selection) = 0;
  virtual Result<model::Profile> ReadProfile(const model::Selection& selection) = 0;
  virtual Result<model::Profile> ReadGpuProfile(const model::Selection& selection) = 0;
  virtual Result<std::vector<store::DeviceStrip>> ReadGpuStrips(const model::Selection& selection,
                                                                int buckets) = 0;
  virtual Result<std::vector<store::MetricStrip>> ReadMetricStrips(const model::Selection& selection,
                                                                   int buckets) = 0;
  virtual Result<std::vector<store::MetricMean>> ReadMetricMeans(const model::Selection& selection,
                                                                 std::span<const model::Metric> metrics) = 0;
  virtual Result<store::DeviceMarks> ReadDeviceMarks(const model::Selection& selection, int buckets) = 0;
  virtual Result<std::vector<store::DeviceUse>> ReadDeviceUse(const model::Selection& selection) = 0;
  virtual Result<std::optional<std::vector<model::LaunchThreadPart>>> ReadLaunchThreadsWhileIdle(
      const model::Selection& selection) = 0;
  virtual Result<std::vector<store::GpuUser>> ReadGpuUsers(const model::Selection& selection) = 0;
  virtual Result<usage::Usage> ReadUsage(const model::Selection& selection, const usage::SumBy& by) = 0;
  virtual Result<bool> NamesFile(const std::string& file) = 0;
  // The selection's GPU work as one side of a comparison, called `name`. Errors: kInvalidArgument if there is
  // too much of it.
  virtual Result<compare::Run> ReadRun(const model::Selection& selection, const std::string& name) = 0;
  virtual Result<store::Incidents> ReadIncidents(const model::Selection& selection, int buckets) = 0;
  // Errors: kInvalidArgument if the time holds too many events.
  virtual Result<store::Tracks> ReadTracks(const model::Selection& selection,
                                           const store::TracksOptions& options) = 0;
  virtual Result<std::optional<store::LaunchedWork>> ReadWork(const store::WorkPlace& place) = 0;
  // As fleet::Observe.
  virtual Result<fleet::Observations> ReadObservations(const model::Selection& selection) = 0;
};

// The data of a store; the store must outlive the result.
std::unique_ptr<ApiData> ReadingFrom(store::Store& store);

// What the API reports about the program itself.
struct ApiFacts {
  std::string mode;   // "up" or "view"
  bool live = false;  // data still arrives at the store
  // Whether none has arrived for so long that none may come any more. Called from any thread; where it
  // changes, so do the notices.
  std::function<bool()> silent = [] { return false; };
  std::string title;
  // The library that CUDA programs of this machine must be started with to have their GPU work profiled;
  // nullopt: none, or of another machine.
  std::optional<std::string> inject_library = {};
  // Current notices for the user about incomplete data. Called from any thread.
  std::function<std::vector<std::string>()> notices = [] { return std::vector<std::string>(); };
  HttpHandler metrics;  // GET /metrics; null: a 404
  std::shared_ptr<const SourceFolders> sources = std::make_shared<SourceFolders>();
};

// The paths whose answers come from the data.
std::vector<std::string_view> ApiPaths();

// Handles every path; unknown ones get a 404. `data` must outlive it.
HttpHandler ApiHandler(ApiData& data, ApiFacts facts);

}  // namespace gpusonde::server
