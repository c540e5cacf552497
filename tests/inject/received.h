// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "sources/cupti/gpu_events.h"

namespace gpusonde::cupti {

// The received events, with copies of their texts.
struct Received {
  struct KernelOf : Kernel {
    std::string kernel_name;
    uint32_t session = 0;
  };
  struct CallOf : Call {
    std::string call_name;
    int32_t tid = 0;
    uint32_t session = 0;
    std::vector<uint64_t> stack;
    bool stack_taken = false;
  };
  struct Sum {
    uint64_t count = 0, untimed = 0, total_ns = 0, bytes = 0;
    bool operator==(const Sum&) const = default;
  };

  std::set<int32_t> pids;
  struct DeviceOf : Device {
    std::string name;
  };
  std::vector<DeviceOf> devices;
  std::vector<SessionBegin> begins;
  std::vector<SessionEnd> ends;
  std::vector<KernelOf> kernels;
  std::vector<Memcpy> copies;
  std::vector<Memset> sets;
  std::vector<Sync> syncs;
  std::vector<CallOf> calls;
  std::vector<GraphNode> nodes;
  std::vector<std::string> ranges;
  std::vector<std::string> holders;
  std::vector<Overhead> overheads;
  std::vector<Communicator> communicators;
  std::vector<Collective> collectives;
  // The newest totals by session, kind and name.
  std::map<std::tuple<uint32_t, Total::Of, std::string>, Sum> totals;
  // The same for what ran before the session was joined and was not received as a record.
  std::map<std::tuple<uint32_t, Total::Of, std::string>, Sum> earlier_totals;

  // Adds all that can be read now.
  Status Drain(GpuEvents& events);
  Sum TotalOf(Total::Of of, const std::string& name) const;

 private:
  void Add(const Event& event);
};

}  // namespace gpusonde::cupti
