// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api_client.h"
#include "base/result.h"
#include "fleet/catalog.h"
#include "fleet/observe/observation.h"
#include "fleet/service/device_service.h"

namespace gpusonde::app {

// What gpusonde recorded of GPUs in an epoch, for the reports of a fleet's devices: of the machine of `up`,
// or of the hosts of `serve`. Not thread-safe.
class FleetObserver {
 public:
  // `hosts`: names with commas between them or "all", of `serve`; empty: it is `up`. The catalog must outlive
  // it.
  FleetObserver(ApiServer server, std::string hosts, const fleet::Catalog& catalog)
      : server_(std::move(server)), hosts_(std::move(hosts)), catalog_(catalog) {}

  // Asks for the GPUs of the time, from one Unix time in ms to another; what was answered for the same time
  // is asked for again only after a tenth of it, where something was missing. Errors: nothing can be learned
  // now.
  Status Read(int64_t from_ms, int64_t to_ms, int64_t now_ms);

  // The UUIDs of the GPUs that were read.
  std::vector<std::string> Gpus() const;
  // What one of them did. Errors: kUnavailable if it isn't known, or was not observed for half of the time: a
  // GPU that nobody watched is not idle.
  Result<fleet::Work> WorkOf(const std::string& gpu) const;

 private:
  struct Gpu {
    fleet::Observation observation;
    std::string host;  // empty: of `up`
    int64_t observed_ns = 0;
  };

  Result<std::vector<std::string>> Hosts() const;
  Status ReadHosts();
  Status ReadHost(const std::string& host);
  bool IsObserved(int64_t observed_ns) const;

  const ApiServer server_;
  const std::string hosts_;
  const fleet::Catalog& catalog_;
  int64_t from_ms_ = -1;
  int64_t to_ms_ = -1;
  int64_t ask_again_ms_ = 0;
  bool is_complete_ = false;
  Status answered_;                  // an error where no GPU was read
  std::map<std::string, Gpu> gpus_;  // by UUID
};

}  // namespace gpusonde::app
