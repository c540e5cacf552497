// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "model/drops.h"
#include "sources/cupti/event.h"
#include "sources/ebpf/stack_tables.h"

namespace gpusonde::cupti {

// The agent's end of libgpusonde-inject.so. Not thread-safe.
//
// Two ways lead here and may be used at once: USDT probes, read by a kernel program that takes the stacks
// (needs root or CAP_BPF + CAP_PERFMON), and a socket that a program started by us inherits (needs nothing,
// has no stacks, and nothing is lost by it). What comes both ways is taken once, so that a program that
// closes the socket is still heard by its probes.
//
// Any number of these may listen to a process, each from whenever it likes: one that begins within a session
// asks for a snapshot of what was reported earlier.
class GpuEvents {
 public:
  struct Options {
    // libgpusonde-inject.so as we installed it. Only files with the same content are attached to.
    std::string library_path;
    // Every process that has the library mapped, now or later; else those given to Consider and
    // AttachBeforeExec.
    bool every_process = false;
    uint32_t ring_bytes = uint32_t{8} << 20;
    // What one process may say through the probes in a second; more is dropped and counted.
    uint32_t bytes_per_second = uint32_t{16} << 20;
  };

  // With `tables`, loads the kernel program, and stacks are taken as they say; without, only sockets are
  // read. `tables` are used here only. Errors: kNotFound when there is no library at `library_path`; with the
  // kernel program also kPermissionDenied (who may) and kUnsupported (no BTF, no BPF).
  static Result<GpuEvents> Create(const Options& options, const ebpf::StackTables* tables);

  // Makes the socket for a program about to be started. Give `environment` ("NAME=value", for the child only)
  // to it and let it inherit `fd` (close-on-exec is off); close ours after the start.
  struct Inheritance {
    Fd fd;
    std::string environment;
  };
  Result<Inheritance> MakeSocket();

  // `pid` has mapped the file `path` (as the process sees it, e.g. from perf::MapEvent): attaches to its
  // probes if it is our library, but for those of launches. False if it is not, and so far nothing happened.
  // With every_process one call per file serves all processes. Errors: kPermissionDenied, kIo.
  Result<bool> Consider(int32_t pid, const std::string& path);

  // The same before a program of ours has become itself (between fork and exec), so that nothing is missed.
  Status AttachBeforeExec(int32_t pid);

  // Launches of this process are reported from now on, with their stacks. A program that starts waits up to
  // half a second for this, so that there is time to learn how its stacks are walked; a running one doesn't.
  // Once per process, after Consider or AttachBeforeExec; again it has no effect. Errors: kPermissionDenied,
  // kIo.
  Status TakeStacks(int32_t pid);

  // Without the probes: whether this process, which has the library in it, has the socket. A program may
  // close it, and a launcher may keep it to itself.
  bool HasSocket(int32_t pid) const;

  // Forgets a process that has ended: its names, its probes.
  void Forget(int32_t pid);

  // Hands over everything that waits. Of one thread of a process in order.
  Status Drain(const std::function<void(const Event&)>& visit);

  // What was lost or incomplete since the last call.
  model::DropCounts TakeDrops();

  // Readable (epoll) when there is more than a little to drain, or something that WakeAfter asked for.
  int wake_fd() const;

  // Asks to be woken, once, when a process tells of its work after this time (CLOCK_MONOTONIC). What comes
  // through sockets always wakes.
  void WakeAfter(int64_t time_ns);

  // Detaches; what waits can still be drained. Processes fall asleep within 250 ms and say their last totals
  // before.
  void Stop();

  GpuEvents(GpuEvents&&) noexcept;
  GpuEvents& operator=(GpuEvents&&) noexcept;
  ~GpuEvents();

 private:
  struct State;
  explicit GpuEvents(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The name of the thread that the library has in each process.
inline constexpr std::string_view kLibraryThread = "gpusonde";

// Whether a mapped file's path (as of perf::MapEvent) names the library, before anything is opened.
bool LooksLikeInjectLibrary(std::string_view path);

}  // namespace gpusonde::cupti
