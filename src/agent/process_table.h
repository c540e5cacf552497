// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/address_space.h"
#include "agent/python_process.h"
#include "agent/rows.h"
#include "base/fd.h"
#include "sources/perf/sideband.h"
#include "sources/proc/process.h"
#include "symbols/binary_table.h"
#include "symbols/jit_dump.h"
#include "symbols/perf_map.h"

namespace gpusonde::agent {

// What is known of one process while it lives.
struct Process {
  struct Thread {
    std::string name;
    std::optional<int64_t> started_ns;  // epoch
    std::optional<int64_t> exited_ns;   // epoch
    bool changed = true;                // since it was last written as a row
  };

  Id128 id;
  proc::ProcessInfo info;
  int64_t started_ns = 0;            // epoch
  std::optional<int64_t> exited_ns;  // epoch
  int64_t known_since_ns = 0;        // CLOCK_MONOTONIC; what happened earlier is in what /proc said then
  AddressSpace mappings;
  std::map<int32_t, Thread> threads;
  size_t living_threads = 0;
  bool changed = true;   // since it was last written as a row
  bool visible = false;  // has rows; of the whole machine's processes only those with samples do

  // Code that it made at run time, as told in its jitdump and its perf map; read again when those have grown.
  bool runs_anonymous_code = false;
  symbols::JitDump jit_dump;
  Fd jit_dump_file;  // open from when it was mapped: it may be gone when the process is
  symbols::PerfMap perf_map;
  uint64_t perf_map_bytes = 0;
  int64_t jit_read_ns = 0;   // CLOCK_MONOTONIC
  uint64_t jit_version = 0;  // changes with what they tell

  std::unique_ptr<PythonProcess> python;  // null where no CPython is mapped
  // AddressSpace::generation() when it was last looked for.
  std::optional<uint64_t> python_generation;
  // AddressSpace::generation() when the kernel was last told what it needs to take this process's stacks.
  std::optional<uint64_t> described_generation;
};

// The processes of this machine that are of interest, kept true by side-band events and /proc, and written as
// rows. Not thread-safe.
class ProcessTable {
 public:
  struct Options {
    proc::HostInfo host;
    Id128 source;
    int64_t epoch_offset_ns = 0;
    // Every process; else those given to Follow and their descendants.
    bool every_process = false;
  };
  // `binaries` and `rows` must outlive the table.
  ProcessTable(Options options, symbols::BinaryTable& binaries, Rows& rows);

  // This process is of interest, and every child it makes from now on.
  // Errors: kNotFound when there is no such process.
  Status Follow(int32_t pid);

  // Events in the order of their time.
  void Apply(const perf::SidebandEvent& event);

  // Brings what is known of every process into line with what /proc shows now: after events were lost, exits
  // among them. Returns the pids of processes that have ended meanwhile.
  std::vector<int32_t> Resync(int64_t time_ns);

  // The process that a sample was taken of; read from /proc, or made up from its pid alone, if it wasn't
  // known. The reference is valid until the next WriteChanges.
  Process& FindSampled(int32_t pid, int64_t time_ns);

  // Reads the process's jitdump and perf map again if they have grown; looks a few times a second at most.
  void RefreshJitCode(Process& process);

  // Looks for a CPython interpreter among the process's mappings, if they have changed.
  void RefreshPython(Process& process);

  // Whether a process with this pid runs, as far as the events told so far.
  bool Runs(int32_t pid) const { return by_pid_.contains(pid); }

  // Writes the rows of what changed, and forgets processes that have ended.
  void WriteChanges();

  // Writes everything again from now on, as into a new store.
  void Rewrite();

  // Whether any followed process still runs.
  bool any_alive() const { return !by_pid_.empty(); }

 private:
  Process* Known(int32_t pid);
  Process* Ended(int32_t pid);
  // Adds a process as /proc shows it now; null when it is gone.
  Process* AddFromProc(int32_t pid);
  // Adds one of which the kernel told no more than this.
  Process* AddByPid(int32_t pid, int32_t parent_pid, int64_t start_ns);
  Process* Insert(proc::ProcessInfo info, int64_t known_since_ns);
  void ResyncThreads(Process& process, int64_t time_ns);
  void EndThreads(Process& process, const std::unordered_set<int32_t>& living, int64_t time_ns);
  void ResyncMappings(Process& process, int64_t time_ns);
  void End(Process& process, int64_t time_ns);
  void MakeVisible(Process& process);
  static void OpenJitDump(Process& process, const std::string& path);
  void RefreshPerfMap(Process& process);
  void Map(Process& process, const AddressSpace::Mapping& mapping, int64_t time_ns);

  void On(const perf::MapEvent& event, int64_t time_ns);
  void On(const perf::CommEvent& event, int64_t time_ns);
  void On(const perf::ForkEvent& event, int64_t time_ns);
  void On(const perf::ExitEvent& event, int64_t time_ns);

  void WriteProcess(Process& process);
  void WriteMapping(const Process& process, const AddressSpace::Mapping& mapping, int64_t time_ns);
  void WriteBinary(const symbols::BinaryTable::Binary& binary);

  Options options_;
  symbols::BinaryTable& binaries_;
  Rows& rows_;
  std::unordered_map<int32_t, std::unique_ptr<Process>> by_pid_;
  // Kept for one round more: the last samples of a process are of its way out.
  std::vector<std::unique_ptr<Process>> ended_;
  std::vector<std::unique_ptr<Process>> ended_before_;
  std::unordered_set<Id128> binaries_written_;
};

}  // namespace gpusonde::agent
