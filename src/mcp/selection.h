// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "mcp/arguments.h"
#include "mcp/source.h"

namespace gpusonde::mcp {

// The part of the data that a call is about.
struct Range {
  std::string query;   // parameters of the API: "from_us=…&to_us=…", possibly empty
  std::string bounds;  // as JSON: {"from_us","to_us"}, for the answer; null values where there is no data
};

// Where data still arrives there are days of it; a call that names no time is about the newest.
inline constexpr int64_t kDefaultLiveSeconds = 900;

// The arguments of a time range.
std::vector<Parameter> RangeParameters();
// Those and a process, and a filter of stacks.
std::vector<Parameter> SelectionParameters();

// Errors: the source's; kInvalidArgument for a range that ends before it begins.
Result<Range> ReadRange(Source& source, const Arguments& arguments);

// `path` with the parameters of the range, and then others: "flamegraph?from_us=…&type=gpu".
std::string Target(const std::string& path, const Range& range, const std::string& more = {});

}  // namespace gpusonde::mcp
