// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/id128.h"
#include "model/enums.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per code location in a stack; identified by its place, never by its symbols.
struct Location {
  Id128 location;
  FrameKind kind{};
  std::optional<Id128> binary;
  std::optional<int64_t> address;
  std::vector<Id128> functions;
  std::vector<int64_t> lines;
};

inline constexpr Table kLocations(
    "locations", Key{1},
    "One row per code location in a stack; identified by its place, never by its symbols",
    Field("location", &Location::location, "",
          "hash of the raw frame: build id and offset; file, qualified name, first line and instruction"),
    Field("kind", &Location::kind, "", "native, kernel, jit, python, gpu or unknown"),
    Field("binary_id", &Location::binary, "", "the file it is in; null if none"),
    Field("address", &Location::address, "bytes",
          "offset in the file (native), in the kernel image (kernel), or the address itself (jit)"),
    Field("functions", &Location::functions, "",
          "the function, after the functions inlined into it (innermost first); empty when no symbol covers "
          "it"),
    Field("lines", &Location::lines, "", "the line in each of `functions`, 0 when unknown"));

}  // namespace gpusonde::model
