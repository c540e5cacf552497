// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mcp/selection.h"
#include "mcp/tool.h"

namespace gpusonde::mcp {

// Stacks keep this many of their innermost frames.
inline constexpr size_t kMaxShownFrames = 24;

// The first `limit` functions and stacks of a flame graph, a response of the API, by their time:
// {"range","unit","total","samples","functions":[…],"stacks":[…],"omitted":{…}}. Errors: kInternal for a
// response that isn't one.
Result<std::string> HottestPaths(std::string_view flame_graph, const Range& range, int64_t limit);

// The keys of that object.
std::vector<ResultField> PathResults();

}  // namespace gpusonde::mcp
