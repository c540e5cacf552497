// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/selection.h"
#include "store/store.h"

namespace gpusonde::store {

// A selection as a condition on the rows of `samples`, with the parameters of its question marks in order.
struct SelectionSql {
  std::string condition;
  std::vector<Parameter> parameters;
};

// Samples of running threads in the selection. With a filter, a frame's name is what model::FrameName shows.
SelectionSql CpuSamplesIn(const model::Selection& selection);

}  // namespace gpusonde::store
