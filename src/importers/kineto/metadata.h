// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "importers/trace.h"

namespace gpusonde::importers::kineto {

// The metadata of a trace, outside its events.
struct Metadata {
  bool complete = false;  // its first value, an object or array, ends; other bytes may follow
  bool valid = false;     // that value is JSON
  std::optional<int64_t> base_time_ns;
  std::optional<int64_t> rank;  // distributedInfo.rank
  std::vector<TracedDevice> devices;
};
Metadata ParseMetadata(std::string_view text);

}  // namespace gpusonde::importers::kineto
