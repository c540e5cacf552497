// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/host_reader.h"
#include "serve/hosts.h"
#include "store/queries/newest_incidents.h"

namespace gpusonde::serve {

// What the list of hosts shows of one.
struct HostSummary {
  int64_t gpus = 0;
  std::optional<double> busy;  // 0…1 of the time observed in the last 15 minutes; not of a silent host
  int64_t incidents = 0;       // in the last 24 hours
  std::vector<store::NewestIncidents::Line> newest;  // of those, at most 20
};

// Summarises all hosts while clients read their list (HostReader). Thread-safe.
class HostList {
 public:
  // `hosts` must outlive it.
  explicit HostList(Hosts& hosts);

  struct Line {
    std::shared_ptr<Host> host;
    std::shared_ptr<const Result<HostSummary>> summary;  // null if it isn't read yet
  };
  // All hosts by name. Summaries are some 10 s old, or as young as the thread can have them. Waits for the
  // first ones of each host, and for those of a list that wasn't read lately, at most 5 s.
  std::vector<Line> Read();

 private:
  struct Known {
    std::shared_ptr<const Result<HostSummary>> summary;
    int64_t read_ns = 0;
  };
  static bool IsYounger(const Host& host, const Known& known, int64_t age_ns);

  Hosts& hosts_;
  HostReader<Known> reader_;
};

}  // namespace gpusonde::serve
