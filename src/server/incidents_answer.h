// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

// Incidents as a client of the API reads them (docs/api.md).
namespace gpusonde::server {

struct IncidentsAnswer {
  struct Part {  // of a step, ns
    std::string label;
    std::optional<double> before_ns;
    std::optional<double> during_ns;
  };
  struct Incident {
    std::string host;  // empty: the one that was asked for
    std::string process_name;
    int32_t pid = 0;
    int64_t from_us = 0;
    std::optional<int64_t> to_us;  // null while it lasts
    std::string sentence;
    std::vector<Part> account;  // only of /api/v1/incidents
  };
  struct Disturbance {
    std::string process_name;
    int32_t pid = 0;
    std::string sentence;
  };
  std::vector<Incident> incidents;                               // the oldest first
  std::vector<Disturbance> disturbances = {};                    // of all steps; only of /api/v1/incidents
  std::optional<int64_t> steps = std::nullopt;                   // only of /api/v1/incidents
  int64_t hosts = 0;                                             // that were read; only of /api/v1/hosts
  int64_t omitted = 0;                                           // older ones; only of /api/v1/incidents
  std::vector<std::pair<std::string, std::string>> errors = {};  // hosts that weren't, and why
};

// Reads the body of /api/v1/incidents or /api/v1/hosts. Errors: kCorrupt for anything else.
Result<IncidentsAnswer> ParseIncidents(const std::string& json);

// Whether a body of /api/v1/overview is of `gpusonde serve`, which also has /api/v1/hosts.
bool IsOverviewOfServe(const std::string& json);

// For a person, as `gpusonde diagnose` shows incidents of files; without the hosts in `errors`. Texts from
// outside are escaped.
std::string ToText(const IncidentsAnswer& answer);

}  // namespace gpusonde::server
