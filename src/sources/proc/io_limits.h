// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::proc {

// For a block device ("254:0"), bytes and operations, read and written: limits per second (0: no limit), or
// counters.
struct IoAmounts {
  enum Kind : uint8_t { kReadBytes, kWrittenBytes, kReads, kWrites, kKinds };
  std::array<int64_t, kKinds> of{};
};
using IoByDevice = std::map<std::string, IoAmounts, std::less<>>;

// cgroup v2 (Documentation/admin-guide/cgroup-v2.rst): io.max and io.stat, "254:0 rbps=1048576 wiops=max".
IoByDevice ParseIoLimits(std::string_view io_max);
IoByDevice ParseIoUse(std::string_view io_stat);
// cgroup v1 (Documentation/admin-guide/cgroup-v1/blkio-controller.rst): a file for each kind of limit,
// "254:0 1048576", and two for the usage, "254:0 Read 4096".
void AddIoLimitsV1(std::string_view file, IoAmounts::Kind kind, IoByDevice& limits);
void AddIoUseV1(std::string_view file, bool operations, IoByDevice& use);

// The I/O limits of a process's cgroup and its ancestors on block devices, and how much of them is used. Not
// thread-safe.
class IoLimits {
 public:
  // Reads the process's current cgroups; there are none where no controller is mounted.
  static IoLimits Of(int32_t pid);

  // The minimum time (ns) that the limits allow for what was read and written since the last call: the
  // maximum over all limits. 0 without limits; nullopt at the first call.
  std::optional<int64_t> TakeThrottledNs();

  bool empty() const { return groups_.empty(); }

 private:
  struct Group {
    std::string folder;  // ends with '/'
    bool v1 = false;
    std::optional<IoByDevice> last;
  };
  static IoByDevice LimitsOf(const Group& group);
  static IoByDevice UseOf(const Group& group);

  std::vector<Group> groups_;
  bool asked_ = false;
};

}  // namespace gpusonde::proc
