// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per executable mapping of a process.
struct Mapping {
  Id128 process;
  int64_t mapped_ns = 0;
  int64_t start_address = 0;
  int64_t end_address = 0;
  int64_t file_offset = 0;
  std::optional<Id128> binary;
};

inline constexpr Table kMappings(
    "mappings", Key{3}, "One row per executable mapping of a process",
    Field("process", &Mapping::process, "", "the process with this address space"),
    Field("mapped_ns", &Mapping::mapped_ns, "ns", "when it was mapped, or first seen"),
    Field("start_address", &Mapping::start_address, "",
          "first address (two's complement of the unsigned address)"),
    Field("end_address", &Mapping::end_address, "", "first address after it"),
    Field("file_offset", &Mapping::file_offset, "bytes", "offset in the file of start_address"),
    Field("binary_id", &Mapping::binary, "", "the mapped file; null for anonymous memory"));

}  // namespace gpusonde::model
