// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "wire/python.h"

namespace gpusonde::agent {

// One frame of a stack that has native and Python frames in call order.
struct MergedFrame {
  enum class Kind : uint8_t {
    kNative,   // native[index]
    kPython,   // python[index]
    kMissing,  // native frames that could not be unwound
  };
  Kind kind;
  size_t index = 0;
};

// Replaces each native frame of the interpreter's evaluation loop with the Python frames that it ran: all up
// to the next entry frame. `is_evaluator(i)` says whether native[i] is such a frame. Python frames whose
// native frame isn't in the stack (unwinding stopped before it) are placed at the root, after one missing
// frame. All frames are leaf first.
std::vector<MergedFrame> Interleave(size_t native_frames, const std::function<bool(size_t)>& is_evaluator,
                                    std::span<const gpusonde_python_frame> python);

}  // namespace gpusonde::agent
