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

// Whose time a profile holds: CPU time by sampled stack, GPU time by the stack that launched it, or off-CPU
// time.
enum class ProfileType : uint8_t { kCpu, kGpu, kOffCpu };

template <>
struct EnumNames<ProfileType> {
  static constexpr std::string_view Name(ProfileType type) {
    constexpr std::string_view kNames[] = {"cpu", "gpu", "off_cpu"};
    return kNames[static_cast<size_t>(type)];
  }
};

// A profile in memory: stacks with a value each, and the names for them, with indices instead of ids. The
// store produces it for a selection; the flame graph, the summary and every exporter read it. Every index
// points into the same object; -1 means none.
//
// In a profile of GPU time the leaf of each stack is a kernel, copy or set (FrameKind::kGpu), and `count` is
// how many ran.
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
    // Innermost inlined function first. Empty if no symbol covers the location: FrameName() then shows the
    // module and offset.
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
    double variance_ns2 = 0;  // of weight_ns, where waits or seconds were sampled
    // The rest is for GPU time only.
    int32_t device = -1;
    std::optional<int64_t> stream;  // absent when it isn't known, or several
    bool graph = false;             // launched as part of a CUDA graph
    // The launch group in `launch_groups` and the sampled launches that estimate this sample's share of it;
    // -1: the time is exact.
    int32_t launch_group = -1;
    LaunchSums launches;
  };
  // Launches of one kernel: their time is exact, its division among stacks is estimated from the sampled
  // launches (model/launch_shares.h).
  struct LaunchGroup {
    int64_t total_ns = 0;
    LaunchSums launches;
  };

  ProfileType type = ProfileType::kCpu;
  int64_t start_ns = 0;  // begin and end of the selection, ns since the epoch
  int64_t end_ns = 0;
  double sampling_hz = 0;  // 0 when unknown or mixed
  // Samples of only one second in so many were read, and stand for as much: times are estimates. 1: of all.
  int64_t one_second_in = 1;
  std::vector<Binary> binaries;
  std::vector<Function> functions;
  std::vector<Location> locations;
  std::vector<std::vector<int32_t>> stacks;  // location indices, leaf first
  std::vector<Thread> threads;
  std::vector<Device> devices;
  std::vector<Sample> samples;
  std::vector<LaunchGroup> launch_groups;
};

// Makes the counts and times of samples safe to add up and to round: none is negative, and if the sum of all
// exceeds 2^62, each is cut to an equal share of that, which leaves plausible ones as they are. For profiles
// of files that anyone may have written.
void BoundSums(Profile& profile);

// What a person is shown for the frame `line` (an index into locations[location].lines, or 0 when there are
// none): the function's name; else "[libfoo.so+0x1234]"; for code made at run time "[JIT code]"; else
// "[unknown]".
std::string FrameName(const Profile& profile, int32_t location, size_t line = 0);

}  // namespace gpusonde::model
