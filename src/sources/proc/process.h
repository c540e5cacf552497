// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id128.h"
#include "base/result.h"

// Information about processes from /proc. Names, command lines and paths are untrusted, and may change or
// disappear between two reads. Source: proc(5).
namespace gpusonde::proc {

// What stands for the policy SCHED_IDLE among nice values: it yields to all of them.
constexpr int kNiceOfIdle = 20;

struct ProcessInfo {
  int32_t pid = 0;
  int32_t parent_pid = 0;
  int32_t namespace_pid = 0;  // its pid in its own pid namespace
  int32_t user_id = 0;        // real
  int64_t start_ticks = 0;    // since boot, in units of 10 ms (USER_HZ)
  std::string name;           // comm, at most 15 bytes
  char state = 0;             // of its first thread: 'R', 'S', 'D', 'T' (stopped), 't' (traced), …
  int nice = 0;               // of its first thread, -20 to 19; kNiceOfIdle for SCHED_IDLE
  std::string command;     // arguments, joined by spaces, as are their lines; at most 4,096 bytes; empty for
                           // kernel threads
  std::string executable;  // in its own mount namespace; empty for kernel threads
  std::string cgroup;      // as model::MostTellingCgroup chooses it
};

// Whether it is stopped by a signal or by a tracer.
inline bool IsStopped(char state) { return state == 'T' || state == 't'; }
inline bool IsStopped(const ProcessInfo& info) { return IsStopped(info.state); }

// Errors: kNotFound when there is no such process, or it has ended; kPermissionDenied.
Result<ProcessInfo> ReadProcess(int32_t pid);

// Reads only pid, name, state, parent, start and nice value, from one file instead of five.
Result<ProcessInfo> ReadProcessStat(int32_t pid);

struct MappedFile {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  // As the process itself sees it; "[vdso]"; empty for anonymous memory.
  std::string path;
  // Whether it is a file that the process mapped before it changed its root (chroot), and can't reach any
  // more. `path` is then what the kernel shows us, as in /proc/PID/map_files.
  bool outside_root = false;

  // Its part after the last slash.
  std::string_view name() const { return std::string_view(path).substr(path.rfind('/') + 1); }
};
// Whether one of the files has a name that begins so, in any folder.
bool MapsFile(std::span<const MappedFile> files, std::string_view beginning);
// The executable mappings, sorted by address.
Result<std::vector<MappedFile>> ReadExecutableMappings(int32_t pid);
// Parses the text of /proc/PID/maps; lines that don't parse are left out. The kernel writes paths as they are
// below our root: `root` is where that of the process is, "/" in most cases.
std::vector<MappedFile> ParseExecutableMappings(std::string_view maps, std::string_view root = "/");

struct ThreadInfo {
  int32_t tid = 0;
  std::string name;
};
// Including a main thread that has ended: the kernel lists it until the parent has waited for the process.
std::vector<ThreadInfo> ReadThreads(int32_t pid);
// Whether a thread has ended, or has begun to.
bool HasThreadEnded(int32_t pid, int32_t tid);

// Of a thread, as in ProcessInfo; nullopt when it has ended, or can't be read.
std::optional<char> ReadThreadState(int32_t pid, int32_t tid);

// All current processes; all descendants of a process (without itself).
std::vector<int32_t> ListProcesses();
std::vector<int32_t> ListDescendants(int32_t pid);
// The children of a process, without a scan of all processes; empty on kernels without CONFIG_PROC_CHILDREN.
std::vector<int32_t> ListChildren(int32_t pid);

// An id of a process that is unique in the fleet.
Id128 MakeProcessId(std::string_view boot_id, int32_t pid, int64_t start_ticks);

// Whether the process with this id, which had this pid, still runs on this machine.
bool StillRuns(const Id128& id, int32_t pid);
// Whether there is a process with this pid, be it another one than before: a system call, /proc isn't read.
bool HasProcess(int32_t pid);

struct HostInfo {
  std::string name;
  std::string boot_id;
  std::string kernel_release;
  int32_t cpus = 0;  // online
};
HostInfo ReadHost();

// Ticks since boot (as ProcessInfo::start_ticks) of a CLOCK_MONOTONIC time; differs by the time spent
// suspended.
int64_t TicksFromMonotonic(int64_t monotonic_ns);
// CLOCK_MONOTONIC time of ticks since boot.
int64_t MonotonicFromTicks(int64_t ticks);

}  // namespace gpusonde::proc
