// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "model/profile.h"

namespace gpusonde::server {

// Time of one line of a source file.
struct LineTime {
  // It was the innermost line of the file on the stack: it ran itself, or what it had called in other files
  // did. The sum over the lines is the file's time.
  int64_t self_ns = 0;
  int64_t total_ns = 0;  // it was on the stack
};

// The time of the profile by line of `file`, which is compared to the byte; 0 is the line of frames of which
// only the file is known. A line that is on a stack several times counts once, so that none has more than the
// profile.
//
// Linear in the number of frames. Weights below 0 count as 0 and sums stop at the largest int64, as in
// BuildFlameTree.
std::map<int32_t, LineTime> TimesByLine(const model::Profile& profile, std::string_view file);

// That of all lines of all files, and of code without any.
int64_t TotalTime(const model::Profile& profile);

}  // namespace gpusonde::server
