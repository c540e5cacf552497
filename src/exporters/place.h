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
  std::string name;    // "train.py:41 load_batch"; "load_batch (libtrain.so)" without its line
  std::string called;  // the nearest frame above it that is not the interpreter's; empty when there is none
};

// The frame of a stack (leaf first) that a person can do something about: the innermost Python function of
// the program itself, else of any, else the innermost frame whose line is known, else the innermost function
// that has a name; none of them in the GPU's driver and libraries, nor in our own.
std::optional<Place> PlaceOf(const model::Profile& profile, const std::vector<int32_t>& stack);

}  // namespace gpusonde::exporters
