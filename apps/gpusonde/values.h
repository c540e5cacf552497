// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace gpusonde::app {

// Validators with readable --help names and errors. For `--pid abc`, CLI11's own validators print the limits
// of a double.
inline constexpr int64_t kAnyWhole = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kMaxPid = int64_t{1} << 22;  // PID_MAX_LIMIT of Linux

// A path that isn't empty, as it is where a script's variable is unset.
CLI::Validator Path();
// A regular expression of ECMAScript.
CLI::Validator Regex();
CLI::Validator OneOf(std::vector<std::string> values);
CLI::Validator WholeNumber(std::string name, int64_t min, int64_t max = kAnyWhole);
// A finite number from `min` to `max`, or also 0 if `also_zero`.
CLI::Validator Number(std::string name, double min, double max, bool also_zero = false);
// "5%" or "5" becomes 0.05; up to 1000 %. For transform().
CLI::Validator Percentage();
// The same from `min` to `max` per cent.
CLI::Validator Percentage(double min, double max);
// "20GB", "1.5GiB", "100kB" or "4096": becomes a number of bytes. For transform().
CLI::Validator Size();
// Greater than 0, at most 1e9.
CLI::Validator PositiveNumber(std::string name);

}  // namespace gpusonde::app
