// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id128.h"
#include "model/enums.h"
#include "model/launch_shares.h"

namespace gpusonde::model {

// What the time in a profile is: that of CPUs in sampled stacks, that of GPUs under the stacks that asked
// for it, or that in which threads waited.
enum class ProfileType : uint8_t { kCpu, kGpu, kOffCpu };

template <>
struct EnumNames<ProfileType> {
  static constexpr std::string_view Name(ProfileType type) {
    constexpr std::string_view kNames[] = {"cpu", "gpu", "off_cpu"};
    return kNames[static_cast<size_t>(type)];
  }
};

// A profile in memory: stacks with a value each, the names behind them, indices instead of ids. What the
// store gives for a selection, and what the flame graph, the summary and every exporter read. Everything an
// index points to is in the same object; -1 means none.
//
// In one of GPU time the leaf of each stack is a kernel, copy or set (FrameKind::kGpu), and `count` is how
// many ran.
struct Profile {
  struct Binary {
    std::string name;
    std::string path;
    std::string build_id;  // hex; empty where there is none
  };
  struct Function {
    std::string name;         // demangled
    std::string system_name;  // as in the symbol table
    std::string file;         // empty when unknown
    int32_t line = 0;         // first line; 0 when unknown
  };
  struct Line {
    int32_t function = -1;
    int32_t line = 0;  // 0 when unknown
  };
  struct Location {
    FrameKind kind = FrameKind::kUnknown;
    int32_t binary = -1;
    int64_t address = 0;
    // Innermost inlined function first. Empty when no symbol covers the location: people are then shown
    // FrameName(), the module and offset.
    std::vector<Line> lines;
  };
  struct Thread {
    Id128 process;
    int32_t pid = 0;
    int32_t tid = 0;
    std::string process_name;
    std::string name;
    std::string command;     // the process's command line; empty when unknown
    int32_t parent_pid = 0;  // of the process; 0 when unknown
  };
  struct Device {
    std::string name;
    int32_t ordinal = 0;  // on its host
    bool simulated = false;
  };
  // All samples of one thread in one stack.
  struct Sample {
    int32_t stack = -1;
    int32_t thread = -1;
    int64_t count = 0;
    int64_t weight_ns = 0;
    // The rest is for GPU time only.
    int32_t device = -1;
    std::optional<int64_t> stream;  // absent when it isn't known, or several
    bool graph = false;             // launched as part of a CUDA graph
    // Which of `launch_groups` it is a part of, and the sampled launches that say how large a part; -1: its
    // time is exact.
    int32_t launch_group = -1;
    LaunchSums launches;
  };
  // Launches of one kernel whose time is exact, and whose division among stacks is estimated from the sampled
  // ones (model/launch_shares.h).
  struct LaunchGroup {
    int64_t total_ns = 0;
    LaunchSums launches;
  };

  ProfileType type = ProfileType::kCpu;
  int64_t start_ns = 0;  // first and last moment of the selection, ns since the epoch
  int64_t end_ns = 0;
  double sampling_hz = 0;  // 0 when unknown or mixed
  std::vector<Binary> binaries;
  std::vector<Function> functions;
  std::vector<Location> locations;
  std::vector<std::vector<int32_t>> stacks;  // location indices, leaf first
  std::vector<Thread> threads;
  std::vector<Device> devices;
  std::vector<Sample> samples;
  std::vector<LaunchGroup> launch_groups;
};

// What a person is shown for the frame `line` (an index into locations[location].lines, or 0 when there are
// none): the function's name; else "[libfoo.so+0x1234]"; for code made at run time "[JIT code]"; else
// "[unknown]".
std::string FrameName(const Profile& profile, int32_t location, size_t line = 0);

}  // namespace gpusonde::model
