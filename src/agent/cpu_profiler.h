// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/device_table.h"
#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// From raw samples and side-band events to rows: the first half of a sample's life
// (docs/life-of-a-sample.md). Poll it a few times a second. Not thread-safe.
//
// Without the kernel's side, which needs privileges, there are no CPU samples and no stacks: programs started
// by us tell of their GPU work by a socket, and /proc tells of their processes.
class CpuProfiler {
 public:
  struct Options {
    double frequency_hz = 99;
    bool every_process = false;  // else those given to Follow and their descendants
    bool with_kernel = true;     // else what needs no privilege
    std::string command;         // what is recorded, as typed; empty for the whole machine
    int64_t epoch_offset_ns = MeasureEpochOffset();  // of every time in the rows
    // Devices that others than the profiled programs tell of as well.
    std::shared_ptr<DeviceTable> devices = std::make_shared<DeviceTable>();
    symbols::LineClient::Options lines;  // who finds source lines
  };

  // Starts sampling. Errors: those of ebpf::CpuSampler and perf::Sideband; without the kernel's side those of
  // cupti::GpuEvents.
  static Result<CpuProfiler> Create(const Options& options);

  // Samples this process and every descendant it makes from now on. Errors: kNotFound.
  Status Follow(int32_t pid);

  // What is recorded begins and ends there (CLOCK_MONOTONIC): samples from before, of setting up, and from
  // after are left out. The profile of a whole machine has no such limits.
  void Begin(int64_t begin_ns, int64_t end_ns);

  // How a program about to be started can tell of its GPU work: all of it, for as long as it runs. It must be
  // forked while `socket` is open and get `environment` ("NAME=value") on top of its own; both are empty
  // where GPU work can't be heard.
  struct GpuEar {
    Fd socket;
    std::vector<std::string> environment;
  };
  Result<GpuEar> MakeGpuEar();

  // The process, forked but not yet the program, is the one that MakeGpuEar was called for.
  Status HearGpuOf(int32_t pid);

  // Gathers everything up to now and returns it as batches, names before what refers to them.
  Result<std::vector<model::Batch>> Poll();

  // The next batches repeat every name that they refer to, as a new store needs them.
  void Rewrite();

  // Counts rows that whoever took the batches could not write.
  void CountFailedRows(int64_t rows);

  // Stops sampling and returns the last batches; the source's row now has an end.
  Result<std::vector<model::Batch>> Finish();

  // The run of this profiler; of what else was gathered beside it, too.
  Id128 source() const;

  // Whether a followed process still runs, as of the last Poll.
  bool any_alive() const;

  // Waits until a program tells of its GPU work, for `least_ms` at least and `most_ms` at most, or
  // `interrupt_fd` (-1: none) is readable, or a signal arrives. Meanwhile it gathers, for the next Poll, when
  // a kernel buffer fills up or a sample shows what has to be learnt at once.
  //
  // Programs tell four times a second, each for itself, all that they did since they told last. Who polls
  // right after that has it early and whole; who polls at other times has it late, and now and then a part of
  // it.
  void Wait(int least_ms, int most_ms, int interrupt_fd = -1);

  CpuProfiler(CpuProfiler&&) noexcept;
  CpuProfiler& operator=(CpuProfiler&&) noexcept;
  ~CpuProfiler();

 private:
  struct State;
  explicit CpuProfiler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::agent
