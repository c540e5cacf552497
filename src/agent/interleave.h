// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "wire/python.h"

namespace gpusonde::agent {

// One frame of a stack in which native and Python frames stand in the order of their calls.
struct MergedFrame {
  enum class Kind : uint8_t {
    kNative,   // native[index]
    kPython,   // python[index]
    kMissing,  // native frames that nobody saw
  };
  Kind kind;
  size_t index = 0;
};

// Puts the Python frames where the native stack has the frames of the interpreter's loop, which they replace:
// one native frame ran all Python frames up to the next entry frame. `is_evaluator(i)` says whether native[i]
// is such a frame. Python frames whose native frame isn't in the stack (it could not be followed so far)
// stand at its root, after one missing frame. All leaf first.
std::vector<MergedFrame> Interleave(size_t native_frames, const std::function<bool(size_t)>& is_evaluator,
                                    std::span<const gpusonde_python_frame> python);

}  // namespace gpusonde::agent
