// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/fd.h"
#include "base/time.h"
#include "base/time_shares.h"
#include "model/drops.h"
#include "sources/proc/process.h"
#include "symbols/jit_dump.h"
#include "symbols/perf_map.h"

namespace gpusonde::agent {

// Limits the memory and time spent on the code that processes describe in jitdumps and perf maps: any user
// can write large ones. Not thread-safe.
class JitBudget {
 public:
  struct Limits {
    // A perf map of 350,000 lines; Node.js with a large application writes 50,000.
    size_t process_bytes = size_t{32} << 20;
    size_t user_bytes = size_t{64} << 20;
    size_t bytes = size_t{128} << 20;
  };
  explicit JitBudget(const Limits& limits) : limits_(limits) {}
  const Limits& limits() const { return limits_; }

  // The number of bytes that a process of this user may hold if it holds `held` of them now.
  size_t RoomFor(int32_t user_id, size_t held) const;
  // Records that a process of this user holds `to` bytes instead of `from`.
  void ChangeBytes(int32_t user_id, size_t from, size_t to);

  // Each user gets 5 % of this thread's time, all users together 20 %.
  TimeShares& time() { return time_; }

 private:
  Limits limits_;
  size_t bytes_ = 0;
  std::unordered_map<int32_t, size_t> bytes_by_user_;
  TimeShares time_{200 * kNanosPerMilli, 10 * kNanosPerMilli, 40 * kNanosPerMilli};
};

// The code that one process compiled at run time, read from its jitdump and its perf map. Not thread-safe.
class JitCode {
 public:
  struct Symbol {
    uint64_t address = 0;
    std::string name;
    std::string file;  // empty when unknown
    int32_t line = 0;  // of the address; 0: unknown
  };

  // `budget` must outlive it.
  JitCode(JitBudget& budget, int32_t user_id) : budget_(budget), user_id_(user_id) {}
  ~JitCode() { budget_.ChangeBytes(user_id_, bytes(), 0); }
  JitCode(const JitCode&) = delete;
  JitCode& operator=(const JitCode&) = delete;

  // Call when the process has mapped this file. Opens it if its name is that of a jitdump: the process may
  // remove it.
  void OpenDump(int32_t pid, const std::string& path);

  // Reads what was appended to the jitdump and the perf map since the last call, at most five times a second;
  // `missed`: Find did not know a function, at most fifty times. Returns whether Find may answer differently.
  // A process whose code exceeds the budget is counted once in `drops`.
  bool Refresh(const proc::ProcessInfo& process, model::DropCounts& drops, bool missed = false);

  // The function at this address, from the jitdump if it has one: it also records which code was replaced.
  std::optional<Symbol> Find(uint64_t address) const;

  // Changes whenever the answer of Find may have changed.
  uint64_t version() const { return version_; }

 private:
  size_t bytes() const { return dump_.bytes() + map_.bytes(); }
  void RefreshDump();
  void RefreshMap(const proc::ProcessInfo& process);

  JitBudget& budget_;
  int32_t user_id_;
  Fd dump_file_;
  symbols::JitDump dump_;
  symbols::PerfMap map_;
  uint64_t version_ = 0;
  int64_t read_ns_ = 0;  // CLOCK_MONOTONIC
  bool omitted_ = false;
};

}  // namespace gpusonde::agent
