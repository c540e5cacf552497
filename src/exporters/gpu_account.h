// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/launch_thread_part.h"
#include "model/profile.h"

namespace gpusonde::exporters {

// Input of the account of GPU time.
struct GpuFacts {
  std::vector<model::Profile::Device> devices;  // those with work
  int64_t idle_devices = 0;  // others of the machine: a program may use fewer GPUs than it was meant to
  int64_t busy_ns = 0;       // of those with work
  int64_t observed_ns = 0;   // likewise
  int64_t partial_ns = 0;    // likewise; of that, without the work of a process whose profiling was paused
  int64_t paused_ns = 0;     // likewise; beyond observed_ns, while the profiling of all was paused
  int64_t kernels = 0;
  // Means over the devices and the time in which they were read, %; absent without GPM. A device counts as
  // busy even if only one of its many SMs works.
  std::optional<double> sm_active;
  std::optional<double> tensor_active;
  model::Profile time;                           // GPU time
  std::optional<model::Profile> cpu_while_idle;  // CPU time while the GPUs were idle; absent: not sampled
  std::optional<model::Profile> waits;           // off-CPU time; absent if not read
  // Where CPUs were not sampled, as of traces: what launch threads did while the GPUs were idle. Empty: not
  // known; absent: there was too much to read.
  std::optional<std::vector<model::LaunchThreadPart>> launch_threads;
};

// How GPUs spent their time: the hottest kernels, and the source lines that ran or waited while the GPUs were
// idle. The summary of `gpusonde record` and the top of the web page agree because both use this.
struct GpuAccount {
  // A share of time: a kernel with the line that launched most of it, or a line, range or operator with what
  // it called most of the time; `detail` is empty if unknown.
  struct Part {
    std::string name;
    std::string detail;
    int64_t time_ns = 0;
    int64_t detail_ns = 0;  // of that, the detail's

    // " and others" if more than a tenth of the time is not the detail's.
    std::string_view AndOthers() const { return detail_ns < time_ns / 10 * 9 ? " and others" : ""; }
  };
  enum class IdleCause : uint8_t { kCpu, kWaits, kLaunchThreads, kUnknown };

  int64_t kernels_ns = 0;                 // all kernels, copies and sets, added up
  std::vector<Part> hottest;              // largest first, at most kMaxParts
  int64_t idle_cpu_ns = 0;                // CPU time of the programs that use the GPUs, and of their children
  int64_t one_second_in = 1;              // of idle_cpu_ns and while_idle: model::Profile::one_second_in
  std::vector<Part> while_idle;           // the lines with most of it; largest first, at most kMaxParts
  int64_t waited_ns = 0;                  // off-CPU time of the threads that launch GPU work
  std::vector<Part> waiting_in;           // likewise
  int64_t launch_threads_ns = 0;          // the part of the idle time before work whose launch is known
  std::vector<Part> launch_threads_in;    // what its launch thread did then, likewise
  IdleCause cause = IdleCause::kUnknown;  // which of the three explains the idle time
  // Sentences for the user; `idle` is empty if the GPUs were hardly idle.
  std::string busy;
  std::string idle;
};

constexpr size_t kMaxParts = 3;

// Helper threads of profilers are left out (model/helper_threads.h).
GpuAccount AccountOf(const GpuFacts& facts);

// "SM activity 41 %, tensor pipe 12 %", as far as it was read.
std::string ActivityOf(const GpuFacts& facts);

// "work on 1 of 8 GPUs"; empty if there was work on all.
std::string ShareOfDevices(const GpuFacts& facts);

// Whether `account` needs GpuFacts::waits: CPU time covers less than a tenth of the GPUs' idle time, so waits
// explain it.
bool NeedsWaits(const GpuFacts& facts);

}  // namespace gpusonde::exporters
