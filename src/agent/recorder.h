// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/file_server.h"
#include "base/event_fd.h"
#include "base/result.h"
#include "base/time.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// Set by signal handlers, read by Recorder::Run.
struct RecorderSignals {
  std::atomic<int> interrupts{0};      // SIGINT; a terminal sends it to the program as well
  std::atomic<int> forward_signal{0};  // to forward to the program, which did not receive it
  EventFd arrived;                     // set by each handler, SIGCHLD's too: ends the wait for a round
};

// The policy of `record` over an Engine: profiles one program, or an existing process, into a spool, which
// keeps everything. Not thread-safe.
class Recorder {
 public:
  struct Options {
    std::string spool_folder;
    double frequency_hz = 99;
    double nvml_hz = 10;               // NVML readings per second; 0: none
    std::vector<std::string> command;  // the program to start; else `pid`
    std::vector<int> ignored_signals;  // by that program, though this process catches them
    int32_t pid = 0;
    std::optional<double> duration_s;                   // stop gathering after this; the program goes on
    symbols::LineClient::Options lines;                 // how source lines are found
    symbols::FileReader::Options files = ParsedHere();  // how program files are parsed
    // The offset from CLOCK_MONOTONIC to the wall clock; tests inject one that steps.
    std::function<int64_t()> measure_epoch_offset = MeasureEpochOffset;
  };

  struct Outcome {
    // The program's; nullopt when profiling a process by pid, or when the program still runs.
    std::optional<int> exit_status;
    int killed_by = 0;                  // the signal that killed it; 0: none did
    std::vector<int32_t> left_running;  // processes that the program started and that outlived it
    int64_t failed_rows = 0;            // rows that could not be written to the spool
    int64_t uncounted_rows = 0;         // rows lost too late to be counted in the recording
    std::string first_failure;
    // By how much the wall clock was set while recording. The recording's times follow the clock as it was
    // before.
    int64_t clock_step_ns = 0;
  };

  // Gets everything ready: the kernel side, the spool, and the program stopped before its first instruction.
  // On a machine that has CUDA's driver but refuses the kernel side, GPU work of a program that we start is
  // still recorded. Errors: those of Engine::Create; kNotFound when there is no
  // process `pid`.
  static Result<Recorder> Create(Options options);

  // Starts the program and records until it ends, the duration is over, or the user interrupts (once when
  // profiling a process by pid, twice when running a program). If a signal arrived earlier, the program isn't
  // started, and its exit status is as if that signal had killed it. The gathered data is in the spool on
  // return, also after errors. Errors: kNotFound, kPermissionDenied when the program can't be started.
  Result<Outcome> Run(RecorderSignals& signals);

  // Why the kernel side doesn't work, if only GPU work is recorded, without CPU samples and stacks. Empty if
  // everything works.
  const std::string& refusal() const;

  // Waits for a program that outlives the recording; returns its exit status.
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
