// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/device_table.h"
#include "agent/file_server.h"
#include "agent/gpu_channel.h"
#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"
#include "model/drops.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// Collects the events of all sources that need stacks or processes and turns them into rows: the first half
// of a sample's life (docs/life-of-a-sample.md). Poll it a few times a second. Not thread-safe.
//
// Without the kernel side, which needs privileges, there are no CPU samples and no stacks: programs started
// by us report their GPU work over a socket, and processes are read from /proc.
class Collector {
 public:
  struct Options {
    double frequency_hz = 99;
    bool every_process = false;  // else only those given to Follow and their descendants
    bool with_kernel = true;     // else only what needs no privileges
    // The share of its time that profiling a program's GPU work may cost it; none: the library's own.
    std::optional<double> overhead = std::nullopt;
    std::string host;     // the machine's name in the rows; empty: its own
    std::string command;  // the profiled command as typed; empty for the whole machine
    int64_t epoch_offset_ns = MeasureEpochOffset();  // added to every time in the rows
    // Devices, shared with other sources that report them.
    std::shared_ptr<DeviceTable> devices = std::make_shared<DeviceTable>();
    symbols::LineClient::Options lines;                 // how source lines are found
    symbols::FileReader::Options files = ParsedHere();  // how program files are parsed
  };

  // Starts sampling. Errors: those of ebpf::CpuSampler and perf::Sideband; without the kernel side those of
  // cupti::GpuEvents.
  static Result<Collector> Create(const Options& options);

  // Also samples this process and every descendant that it creates from now on. Errors: kNotFound.
  Status Follow(int32_t pid);

  // Call it before Follow for running processes: waits until the kernel can unwind their stacks, so that the
  // first samples are complete; at most `timeout_ms`, since reading their files may take long.
  void AwaitUnwindTables(std::span<const int32_t> pids, int timeout_ms);

  // Limits recording to [begin_ns, end_ns) of CLOCK_MONOTONIC, so that samples of setting up and shutting
  // down are dropped. Profiles of a whole machine have no such limits.
  void Begin(int64_t begin_ns, int64_t end_ns);

  // Lets a program about to be started report all its GPU work for as long as it runs. Fork it while the
  // socket is open and add the environment to its own.
  Result<GpuChannel> MakeGpuChannel();

  // Attaches the forked process, which has not called exec yet, that MakeGpuChannel was called for.
  Status AttachGpuProgram(int32_t pid);

  // Gathers everything up to now and returns it as batches; rows come after the names that they refer to.
  Result<std::vector<model::Batch>> Poll();

  // Makes the next batches repeat every name that they refer to, as a new store needs them.
  void Rewrite();

  // Counts rows that the caller lost.
  void CountLostRows(model::DropReason reason, int64_t rows);

  // Stops sampling and returns the last batches; the source's row now has an end. Names and lines that are
  // still being looked for are waited for, a few seconds, as long as `may_wait`.
  Result<std::vector<model::Batch>> Finish(const std::function<bool()>& may_wait = [] { return true; });

  // The id of this collector's run, also for rows that others gather beside it.
  Id128 source() const;

  // The pids of followed processes that still run, as of the last Poll.
  std::vector<int32_t> living() const;

  // Waits until a program has flushed its GPU work, at least `min_ms` and at most `max_ms`, or until
  // `interrupt_fd` (-1: none) is readable or a signal arrives. Meanwhile it gathers, for the next Poll, when
  // a kernel buffer fills up or a sample needs the process to be described at once.
  //
  // Injected programs flush every 250 ms, each on its own schedule. Polling right after a flush yields
  // complete batches early; polling at other times yields them late and sometimes split.
  void Wait(int min_ms, int max_ms, int interrupt_fd = -1);

  Collector(Collector&&) noexcept;
  Collector& operator=(Collector&&) noexcept;
  ~Collector();

 private:
  struct State;
  explicit Collector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::agent
