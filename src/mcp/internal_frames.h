// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde::mcp {

// A function of a flame graph, as the API describes it.
struct FrameFacts {
  std::string_view kind;
  std::string_view name;
  std::string_view binary;
  std::string_view file;
};

// Whether it explains nothing to a user: functions of Python's interpreter, of the CUDA libraries and
// gpusonde below a program's call, of starting a process, a thread or an import, and of Go's way to them. The
// rule of the UI's key F (web/src/flamegraph/internals.ts).
bool IsInternal(const FrameFacts& function);

}  // namespace gpusonde::mcp
