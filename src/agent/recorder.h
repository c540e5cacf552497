// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_fd.h"
#include "base/result.h"
#include "base/time.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// Set from signal handlers, looked at by Recorder::Run.
struct RecorderSignals {
  std::atomic<int> interrupts{0};      // SIGINT; a terminal sends it to the program as well
  std::atomic<int> forward_signal{0};  // of which the program doesn't know, to be passed on to it
  EventFd arrived;                     // signalled by each handler, SIGCHLD's too: ends the wait for a round
};

// Profiles one program, or a process that runs already, into a spool. Not thread-safe.
class Recorder {
 public:
  struct Options {
    std::string spool_folder;
    double frequency_hz = 99;
    double nvml_hz = 10;               // how often the state of GPUs is read; 0: never
    std::vector<std::string> command;  // the program to start; else `pid`
    int32_t pid = 0;
    std::optional<double> duration_s;    // stop gathering after this; the program goes on
    symbols::LineClient::Options lines;  // who finds source lines
    // How far the wall clock is from CLOCK_MONOTONIC; tests have one that steps.
    std::function<int64_t()> measure_epoch_offset = MeasureEpochOffset;
  };

  struct Outcome {
    // Of the program; nothing when a process was watched, or when the program still runs.
    std::optional<int> exit_status;
    int64_t failed_rows = 0;     // rows that could not be written to the spool
    int64_t uncounted_rows = 0;  // of these, lost at the very end, so that the recording doesn't count them
    std::string first_failure;
    // How far the wall clock was set meanwhile, if it was; the recording's times follow it as it was before.
    int64_t clock_step_ns = 0;
  };

  // Gets everything ready: the kernel's side, the spool, the program stopped before its first instruction.
  // A machine that has CUDA's driver but refuses the kernel's side still gets GPU work, of a program that we
  // start. Errors: those of CpuProfiler::Create and spool::Writer::Open; kNotFound when there is no process
  // `pid`.
  static Result<Recorder> Create(Options options);

  // Starts the program and gathers until it ends, the duration is over, or a person has had enough: an
  // interrupt while watching a process, a second one while running a program. After a signal that came
  // before, the program isn't started, and its exit status is as if that signal had ended it. What was
  // gathered is in the spool on return, also after errors. Errors: kNotFound, kPermissionDenied when the
  // program can't be started.
  Result<Outcome> Run(RecorderSignals& signals);

  // Why the kernel's side doesn't work, when only what needs no privilege is recorded: GPU work as a whole,
  // without CPU samples and stacks. Empty when everything is.
  const std::string& refusal() const;

  // Waits for a program that outlives the recording; its exit status.
  int WaitForProgram(RecorderSignals& signals);

  Recorder(Recorder&&) noexcept;
  Recorder& operator=(Recorder&&) noexcept;
  ~Recorder();

 private:
  struct State;
  explicit Recorder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::agent
