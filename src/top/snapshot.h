// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

// What `gpusonde top` shows, read through the API of a running `gpusonde up` or `serve` (docs/api.md).
namespace gpusonde::top {

// "Now" is the mean over this time: long enough for a steady number at 19 samples a second.
inline constexpr int64_t kNowUs = 5'000'000;
// A GPU's busy time is shown over so many of these.
inline constexpr int kHistory = 60;

struct Gpu {
  int64_t ordinal = -1;  // -1: unknown; of a MIG instance that of its GPU
  std::string name;
  bool simulated = false;
  std::vector<std::optional<double>> busy;  // %, in equal parts of the history, the oldest first
  // Now; null if it is not measured.
  std::optional<double> busy_now;  // %
  // Of how much of the time now that is, and whether work of a process that wasn't profiled then is missing.
  double observed_ns = 0;
  bool busy_at_least = false;
  std::optional<double> sm_active;  // %, by GPM
  std::optional<double> tensor;     // %, likewise
  std::optional<double> memory_gib, memory_max_gib;
  std::optional<double> power_w, power_limit_w;
  std::optional<double> temperature_c;
  std::optional<double> clock_mhz;
  std::optional<int64_t> xid;  // the last one of the history
  std::string slowed_by;       // now; empty if nothing slows it down
};

struct Process {
  int64_t pid = 0;
  std::string command;
  std::vector<int64_t> gpus;  // ordinals, rising
  // Null if its GPU work wasn't profiled.
  std::optional<double> busy;  // %; 100: its work kept one GPU busy all the time
  std::optional<double> kernels_per_second;
  std::optional<double> memory_bytes;  // on all its GPUs
  double cpu = 0;                      // %; 100: one CPU
  // What profiling costs it, % of its time; null without a budget or until it is known.
  std::optional<double> spent, budget;
  std::optional<double> cost, cost_low, cost_high;  // while profiling is active
};

// An incident or a warning that lasts, or what disturbs all steps of a program.
struct Incident {
  std::string process;  // name and id of what is slow; empty for a warning, where nothing is yet
  std::string sentence;
};

struct Snapshot {
  std::string title;
  std::string mode;               // "up", "view" or "serve"
  std::optional<int64_t> now_us;  // the newest data, since the epoch; null without data
  std::optional<double> cpus;     // null if unknown
  std::optional<double> cpus_busy;
  std::vector<Gpu> gpus;            // by ordinal
  std::vector<Process> processes;   // those that use GPUs and run, by pid
  std::vector<Incident> incidents;  // those that last, the newest first
  std::vector<std::string> notices;
};

// Answers a GET of an address below /api/v1/, such as "overview", with its JSON. Errors end the reading.
using Ask = std::function<Result<std::string>(const std::string& target)>;

// Reads all that is shown, with four requests. Texts are as the server sent them, which may be any bytes.
// Errors: those of `ask`; kCorrupt for a response that is not the API's.
Result<Snapshot> ReadSnapshot(const Ask& ask);

}  // namespace gpusonde::top
