// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/id128.h"

namespace gpusonde::model {

// Where a process runs and from which file, for formats that describe processes by attributes. Empty where it
// isn't known.
struct ProcessFacts {
  std::string host;
  std::string executable;      // path, in the process's own mount namespace
  std::string container;       // id, 64 hex digits
  std::string container_name;  // in its pod if it has one
  std::string pod;             // name of its Kubernetes pod
  std::string pod_namespace;
};

using ProcessFactsById = std::map<Id128, ProcessFacts>;

}  // namespace gpusonde::model
