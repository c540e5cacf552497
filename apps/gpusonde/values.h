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

// What an option takes, as --help names it and errors explain it. CLI11's own validators answer `--pid abc`
// with the limits of a double.
inline constexpr int64_t kAnyWhole = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kMaxPid = int64_t{1} << 22;  // Linux' PID_MAX_LIMIT

CLI::Validator OneOf(std::vector<std::string> values);
CLI::Validator WholeNumber(std::string name, int64_t min, int64_t max = kAnyWhole);
// A finite number from `min` to `max`; `also_zero` if 0 is one as well.
CLI::Validator Number(std::string name, double min, double max, bool also_zero = false);
// Greater than 0.
CLI::Validator PositiveNumber(std::string name);

}  // namespace gpusonde::app
