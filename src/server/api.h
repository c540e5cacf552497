// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/profile.h"
#include "model/selection.h"
#include "server/http_message.h"
#include "server/source_folders.h"
#include "store/gpu_query.h"
#include "store/incident_query.h"
#include "store/metric_query.h"
#include "store/profile_query.h"

// GET /api/v1/…, as docs/api.md describes it.
namespace gpusonde::server {

// What the API asks of the data; the functions of store/profile_query.h, gpu_query.h and metric_query.h.
// Thread-safe.
class ApiData {
 public:
  virtual ~ApiData() = default;
  // Changes whenever the answer to some question may have changed.
  virtual uint64_t Revision() { return 0; }
  virtual Result<store::Overview> ReadOverview() = 0;
  virtual Result<std::vector<store::Overview::SourceInfo>> ReadSources() = 0;
  virtual Result<store::Strip> ReadCpuStrip(const model::Selection& selection, int buckets) = 0;
  virtual Result<std::vector<store::ProcessUse>> ReadProcesses(const model::Selection& selection) = 0;
  virtual Result<model::Profile> ReadProfile(const model::Selection& selection) = 0;
  virtual Result<model::Profile> ReadGpuProfile(const model::Selection& selection) = 0;
  virtual Result<std::vector<store::DeviceStrip>> ReadGpuStrips(const model::Selection& selection,
                                                                int buckets) = 0;
  virtual Result<std::vector<store::MetricStrip>> ReadMetricStrips(const model::Selection& selection,
                                                                   int buckets) = 0;
  virtual Result<store::DeviceMarks> ReadDeviceMarks(const model::Selection& selection, int buckets) = 0;
  virtual Result<std::vector<store::DeviceUse>> ReadDeviceUse(const model::Selection& selection) = 0;
  virtual Result<bool> NamesFile(const std::string& file) = 0;
  virtual Result<store::Incidents> ReadIncidents(const model::Selection& selection, int buckets) = 0;
};

// What a store holds; it must outlive the result.
std::unique_ptr<ApiData> ReadingFrom(store::Store& store);

// What the API says of the program itself.
struct ApiFacts {
  std::string mode;   // "up" or "view"
  bool live = false;  // data still arrives
  std::string title;
  // Sentences for the person about anything incomplete, as of now. Called by any thread.
  std::function<std::vector<std::string>()> notices = [] { return std::vector<std::string>(); };
  std::shared_ptr<const SourceFolders> sources = std::make_shared<SourceFolders>();
};

// Answers every path; of those that the API lacks it says so with a 404. `data` must outlive it.
HttpHandler ApiHandler(ApiData& data, ApiFacts facts);

}  // namespace gpusonde::server
