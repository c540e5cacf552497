// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "model/batch.h"
#include "model/metric_catalogue.h"
#include "model/tables/signals.h"
#include "sources/proc/cgroups.h"
#include "sources/proc/io_limits.h"

namespace gpusonde::agent {

// Host signals that are polled: pressure and steal of the machine, quotas of the cgroups of workloads and how
// these throttle them, the CPUs that they may use, and whether they are stopped. Needs no privileges. Not
// thread-safe.
class HostFiles {
 public:
  // Also reads the throttling of this process's cgroups, and of others once it is moved to them. Call it
  // again for all workloads each round; others are no longer read.
  void SetWorkloads(const std::map<Id128, int32_t>& pids);
  bool IsWorkload(int32_t pid) const { return quotas_.contains(pid); }

  // Appends what the counters grew by since the last call. Nothing without workloads, as there is nothing to
  // compare with. `identify` maps a pid to a process. `now_ns`: CLOCK_MONOTONIC.
  void Write(const Id128& source, int64_t epoch_offset_ns, int64_t now_ns,
             const std::function<std::optional<Id128>(int32_t pid)>& identify,
             model::BatchBuilder<decltype(model::kSignals)>& rows);

 private:
  // Turns a counter that only grows into its increase since the last call.
  class Growth {
   public:
    std::optional<int64_t> Update(std::optional<int64_t> now) {
      const std::optional<int64_t> before = std::exchange(last_, now);
      if (!before.has_value() || !now.has_value() || *now < *before) return std::nullopt;
      return *now - *before;
    }

   private:
    std::optional<int64_t> last_;
  };
  struct Quota {
    std::string cgroups;                         // the text of /proc/PID/cgroup
    std::vector<proc::CgroupFolder> cpu_groups;  // the cgroup and its ancestors
    Growth throttled;
    proc::IoLimits io;
  };
  static Quota QuotaOf(int32_t pid, std::string cgroups);

  std::map<int32_t, Quota> quotas_;  // by pid of a workload
  std::array<Growth, 3> pressure_;
  Growth steal_;
  int64_t read_ns_ = 0;  // CLOCK_MONOTONIC; 0: not since there are workloads
};

}  // namespace gpusonde::agent
