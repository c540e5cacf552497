// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

// The side-band records of perf_event_open(2): mappings, forks, execs and exits of processes. The kernel
// writes each before the process continues, so that even short-lived mappings are reported.
namespace gpusonde::perf {

// A new executable mapping of a file, the vDSO, or anonymous memory.
struct MapEvent {
  int32_t pid = 0;
  uint64_t start = 0;
  uint64_t length = 0;
  uint64_t file_offset = 0;
  std::vector<uint8_t> build_id;  // empty where the file has none
  std::string path;               // as the process sees it; "//anon" for anonymous memory, "[vdso]"
};

// A thread's new name; with `exec`, the process has become another program and its old mappings are gone.
struct CommEvent {
  int32_t pid = 0;
  int32_t tid = 0;
  bool exec = false;
  std::string name;
};

// A new process (pid differs from parent_pid) or thread; it has the name of the thread that created it.
struct ForkEvent {
  int32_t pid = 0;
  int32_t tid = 0;
  int32_t parent_pid = 0;
  int32_t parent_tid = 0;  // 0: not known
};

// A thread ended; a process has ended when its last thread has.
struct ExitEvent {
  int32_t pid = 0;
  int32_t tid = 0;
};

struct SidebandEvent {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::variant<MapEvent, CommEvent, ForkEvent, ExitEvent> what;
};

}  // namespace gpusonde::perf
