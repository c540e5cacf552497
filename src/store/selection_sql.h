// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/selection.h"
#include "store/store.h"

namespace gpusonde::store {

// A part of a statement, with the parameters of its question marks in order.
struct SqlPart {
  std::string text;
  std::vector<Parameter> parameters;

  SqlPart InBrackets() const { return {"(" + text + ")", parameters}; }

  SqlPart& operator+=(const SqlPart& more) {
    text += more.text;
    parameters.insert(parameters.end(), more.parameters.begin(), more.parameters.end());
    return *this;
  }
};

// What rows of CPU time must tell.
enum class Detail {
  kThreads,  // whose it was: process and tid, stack is null
  kStacks,   // and what they were doing
};

// CPU time in the selection, as what follows FROM: rows of start_ns, length_ns, process, tid, stack, count
// and weight_ns. A row is a sample, of length 0, or where the store has them the sum of a window
// (store/windows.h). With a filter, a frame's name is what model::FrameName shows. While a GPU is idle only
// samples tell.
SqlPart CpuTimeIn(const Store& store, const model::Selection& selection, Detail detail);

// The same from samples only.
SqlPart CpuSamplesIn(const model::Selection& selection);

// A selection's `filter` and what it is compared with.
std::string AsciiLower(std::string text);

}  // namespace gpusonde::store
