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
#include "agent/jit_code.h"
#include "agent/python_process.h"
#include "agent/rows.h"
#include "sources/perf/sideband.h"
#include "sources/proc/process.h"
#include "symbols/binary_table.h"

namespace gpusonde::agent {

// What we know of a running process.
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
  int64_t known_since_ns = 0;        // CLOCK_MONOTONIC; /proc showed all earlier changes
  AddressSpace mappings;
  std::map<int32_t, Thread> threads;
  size_t living_threads = 0;
  bool changed = true;   // since it was last written as a row
  bool visible = false;  // has rows; with every_process only sampled processes do

  bool runs_anonymous_code = false;
  std::unique_ptr<JitCode> jit;  // never null

  std::unique_ptr<PythonProcess> python;  // null if no CPython is mapped
  // AddressSpace::generation() when we last looked for an interpreter.
  std::optional<uint64_t> python_generation;
  // AddressSpace::generation() when the process was last described to the kernel for stack unwinding.
  std::optional<uint64_t> described_generation;
  bool waits_for_files = false;    // some were not read yet then,
  uint64_t described_answers = 0;  // and so many of all
};

// The followed processes of this machine, kept up to date from side-band events and /proc and written as
// rows. Not thread-safe.
class ProcessTable {
 public:
  struct Options {
    proc::HostInfo host;
    Id128 source;
    int64_t epoch_offset_ns = 0;
    // Follow every process; else only those given to Follow and their descendants.
    bool every_process = false;
  };
  // Mappings of one process, 100 bytes each; programs with much code have some hundreds. The kernel doesn't
  // report unmapping: when there are so many, they are read from /proc, half as many at most.
  static constexpr size_t kMaxMappings = 8192;

  // `binaries` and `rows` must outlive the table.
  ProcessTable(Options options, symbols::BinaryTable& binaries, Rows& rows);
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // Follows this process and every child that it creates from now on. Errors: kNotFound when it doesn't
  // exist.
  Status Follow(int32_t pid);

  // Applies one event; call in time order.
  void Apply(const perf::SidebandEvent& event);

  // Whether the process goes on after this event. The kernel also reports an exit when a program is executed
  // that changes the user or gains capabilities, or that its user can't read (begin_new_exec in fs/exec.c).
  bool Outlives(const perf::ExitEvent& exit) const;

  // Updates all processes from /proc, after events, possibly exits, were lost. Returns the pids of processes
  // that have ended.
  std::vector<int32_t> Resync(int64_t time_ns);

  // The process of a sample; if unknown, it is read from /proc or created with nothing but its pid. The
  // reference is valid until the next WriteChanges.
  Process& FindSampled(int32_t pid, int64_t time_ns);

  // Looks for a CPython interpreter among the process's mappings, if they have changed. False while files are
  // still being read.
  bool RefreshPython(Process& process);

  // Whether a process with this pid runs, according to the events applied so far.
  bool Runs(int32_t pid) const { return by_pid_.contains(pid); }
  // Whether that process has this thread.
  bool HasThread(int32_t pid, int32_t tid) const;
  // The process with this pid that runs or, if there is none, has ended in this round or the last one.
  std::optional<Id128> Find(int32_t pid) const;

  // Writes the rows that changed and removes processes that have ended.
  void WriteChanges();

  // Writes everything again from now on, as a new store needs it.
  void Rewrite();

  // After Rewrite: rows that are still to come refer to this process, though nothing samples it.
  void WriteAgain(int32_t pid, const Id128& id);

  // Call after the binary table has forgotten files: forgets that their rows were written.
  void ForgetBinaries();

  // Adds the files that are mapped by processes that run or ended just now.
  void AddMapped(std::unordered_set<const symbols::BinaryTable::Binary*>& binaries) const;

  // The pids of followed processes that still run.
  std::vector<int32_t> living() const;

 private:
  Process* Known(int32_t pid) const;
  Process* Ended(int32_t pid) const;
  bool IsRunning(const Process& process) const;
  // Adds a process as /proc shows it now; null if it has ended.
  Process* AddFromProc(int32_t pid);
  // Adds a process that the kernel reported and /proc no longer shows.
  Process* AddByPid(int32_t pid, int32_t parent_pid, int64_t start_ns);
  Process* Insert(proc::ProcessInfo info, int64_t known_since_ns);
  void ReplaceProgram(Process& process, proc::ProcessInfo now);
  void ResyncProgram(Process& process, proc::ProcessInfo now);
  void ResyncThreads(Process& process, int64_t time_ns);
  void EndThreads(Process& process, const std::unordered_set<int32_t>& living, int64_t time_ns);
  void ResyncMappings(Process& process, int64_t time_ns);
  void End(Process& process, int64_t time_ns);
  void MakeVisible(Process& process);
  void Map(Process& process, const AddressSpace::Mapping& mapping, int64_t time_ns);
  std::vector<AddressSpace::Mapping> ReadMappings(const Process& process);
  void ReplaceMappings(Process& process, const std::vector<AddressSpace::Mapping>& now, int64_t time_ns);

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
  JitBudget jit_budget_{{}};
  std::unordered_map<int32_t, std::unique_ptr<Process>> by_pid_;
  // Kept for one more round: the last samples of a process come from its exit.
  std::vector<std::unique_ptr<Process>> ended_;
  std::vector<std::unique_ptr<Process>> ended_before_;
  std::unordered_set<Id128> binaries_written_;
};

}  // namespace gpusonde::agent
