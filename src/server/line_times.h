// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "model/profile.h"

namespace gpusonde::server {

// Time of one line of a source file.
struct LineTime {
  // Time with this line as the innermost line of the file on the stack: in the line itself, or in what it
  // called in other files. Sums up to the file's time.
  int64_t self_ns = 0;
  int64_t total_ns = 0;  // time with this line on the stack
};

// The profile's time by line of `file`, which must match exactly; 0 is the line of frames with an unknown
// line. A line that is on a stack several times counts once, so that no line has more time than the profile.
//
// Linear in the number of frames. Weights below 0 count as 0 and sums saturate at the largest int64, as in
// BuildFlameTree.
std::map<int32_t, LineTime> TimesByLine(const model::Profile& profile, std::string_view file);

// The time of all lines of all files, and of code without lines.
int64_t TotalTime(const model::Profile& profile);

}  // namespace gpusonde::server
