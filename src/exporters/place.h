// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/profile.h"

namespace gpusonde::exporters {

// A frame of a stack that has a name.
struct Place {
  // "train.py:41 load_batch"; without its line "load_batch (libtrain.so)", or "train.py load_batch" in
  // Python.
  std::string name;
  std::string called;  // the nearest frame above it that is not the interpreter's; may be empty
};

// The frame of a stack (leaf first) that the user can act on: the innermost Python function of the program
// itself, else of any library, else the innermost frame with a known line, else the innermost named function.
// Skips the GPU's driver and libraries and our own.
std::optional<Place> PlaceOf(const model::Profile& profile, const std::vector<int32_t>& stack);

}  // namespace gpusonde::exporters
