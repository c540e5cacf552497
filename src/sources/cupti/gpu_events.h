// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "model/drops.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/source.h"

namespace gpusonde::cupti {

// Receives GPU events from libgpusonde-inject.so. Not thread-safe.
//
// There are two transports, which may be used at once: USDT probes, read by a BPF program that takes the
// stacks (needs root or CAP_BPF + CAP_PERFMON), and a socket that a program started by us inherits (needs no
// privileges, is lossless, has no stacks). Batches that arrive through both are decoded once; a program that
// closes the socket is still received through its probes.
//
// Any number of consumers may attach to a process at any time: one that attaches within a session requests a
// snapshot of the earlier state.
class GpuEvents final : public sources::Source {
 public:
  struct Options {
    // Our installed libgpusonde-inject.so. Probes are only attached in files with the same content.
    std::string library_path;
    // Attach to every process that has the library mapped, now or later; else only to those given to Consider
    // and AttachBeforeExec.
    bool every_process = false;
    // The share of its time that profiling a program may cost it; its library keeps to the next lower
    // of its budgets (GPUSONDE_GPU_BUDGETS), and to the lowest of several consumers'. None: 0.5 %, or what
    // others say.
    std::optional<double> budget = std::nullopt;
    // Copies of the library that probes are attached in, each for some ten descriptors. Each container may
    // bring its own, and any user may make more. Further ones take the place of one that was deleted; if
    // there is none, their programs are counted and not received.
    size_t max_files = 32;
    uint32_t ring_bytes = uint32_t{8} << 20;
    // Limit per process of the bytes sent through probes; more is dropped and counted.
    uint32_t bytes_per_second = uint32_t{16} << 20;
  };

  // With `tables`, loads the BPF program, which unwinds stacks with them; without, only sockets are read.
  // `tables` are only used during this call. Errors: kNotFound when there is no library at `library_path`;
  // with the BPF program also kPermissionDenied (names the capabilities) and kUnsupported (no BTF, no BPF).
  static Result<GpuEvents> Create(const Options& options, const ebpf::StackTables* tables);

  // Creates the socket for a program about to be started. Add `environment` ("NAME=value") to the child's
  // environment and let it inherit `fd` (close-on-exec is off); close our copy after the start.
  struct Inheritance {
    Fd fd;
    std::string environment;
  };
  Result<Inheritance> MakeSocket();

  // Call when `pid` has mapped the file `path` (in its mount namespace, e.g. from perf::MapEvent). If the
  // file is our library, attaches to its probes except `launch`; else returns false. With every_process one
  // call per file is enough for all processes. Also false when there are max_files. After an error nothing
  // stays attached, and another call tries again. Errors: kPermissionDenied, kIo.
  Result<bool> Consider(int32_t pid, const std::string& path);

  // Attaches to a child of ours between fork and exec, so that nothing is missed.
  Status AttachBeforeExec(int32_t pid);

  // Reports launches of this process from now on, with their stacks. A program that starts waits up to half a
  // second for this, so that its unwind tables can be prepared first; a running one doesn't wait. Call it
  // once per process, after Consider or AttachBeforeExec; further calls have no effect. Errors:
  // kPermissionDenied, kIo.
  Status EnableLaunchStacks(int32_t pid);

  // Whether this process, which has loaded the library, still has our socket: a program may close it, and a
  // launcher may not pass it on.
  bool HasSocket(int32_t pid) const;

  // Forgets a process that has ended, and detaches from its probes.
  void Forget(int32_t pid);

  // Visits Event. Those of one thread are in order.
  Status Drain(const Visit& visit) override;

  model::DropCounts DrainDrops() override;

  // Readable when the ring fills up, a socket has data, or as requested with WakeAfter.
  std::vector<int> wake_fds() const override;

  // Requests one wake-up for the first batch that a process sends after this time (CLOCK_MONOTONIC). Data
  // from sockets always wakes.
  void WakeAfter(int64_t time_ns);

  // Detaches; pending events can still be drained. The library in each process goes to sleep within 250 ms;
  // it sends its last totals before.
  void Stop() override;

  GpuEvents(GpuEvents&&) noexcept;
  GpuEvents& operator=(GpuEvents&&) noexcept;
  ~GpuEvents() override;

 private:
  struct State;
  explicit GpuEvents(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The name of the library's thread in each process.
inline constexpr std::string_view kLibraryThread = "gpusonde";

// Whether a mapped file (its path as in perf::MapEvent) has the library's name. Opens nothing.
bool LooksLikeInjectLibrary(std::string_view path);

}  // namespace gpusonde::cupti
