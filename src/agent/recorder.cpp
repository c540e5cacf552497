// SPDX-License-Identifier: Apache-2.0
#include "agent/recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/child.h"
#include "agent/engine.h"
#include "base/log.h"
#include "base/time.h"
#include "sources/cupti/inject_library.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

// A sample reaches the disk after at most two rounds, one to be gathered and one to be synced, so kill -9
// loses less than a second. Longer than the flush interval of programs with GPU work, so that rounds follow
// their flushes.
constexpr int kRecorderRoundMs = 300, kMinRecorderRoundMs = 100;

// How long attaching to a running process waits for the unwind tables of its files.
constexpr int kReadyMs = 3'000;

// An interrupt is answered within a second: the recording ends, or the user learns why it hasn't yet.
constexpr int64_t kAnnounceNs = kNanosPerSecond / 2;

// A program that a signal ended has the exit status 128 + signal, as shells say.
constexpr int kSignalledExit = 128;

// Whether GPU work can still be recorded if the kernel side failed with this error.
bool MayRecordGpuOnly(const Error& error, const std::vector<std::string>& command) {
  const bool refused = error.code == ErrorCode::kPermissionDenied || error.code == ErrorCode::kUnsupported;
  return refused && !command.empty() && cupti::FindInjectLibrary().has_value() && cupti::CudaDriverIsThere();
}

}  // namespace

struct Recorder::State {
  Options options;
  Engine engine;
  std::optional<Child> child;
  Outcome outcome;

  Status Gather();
  Status Finish(const RecorderSignals& signals);
  int64_t Write(const std::vector<model::Batch>& batches);
  bool Done(const RecorderSignals& signals, int64_t stop_ns);
  // The signal that arrived before the program was started; 0: none.
  static int StoppedBy(const RecorderSignals& signals);
  void PassOn(RecorderSignals& signals) const;
};

Recorder::Recorder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Recorder::Recorder(Recorder&&) noexcept = default;
Recorder& Recorder::operator=(Recorder&&) noexcept = default;
Recorder::~Recorder() = default;

Result<Recorder> Recorder::Create(Options options) {
  std::string command = fmt::format("{}", fmt::join(options.command, " "));
  if (options.command.empty())
    if (const Result<proc::ProcessInfo> info = proc::ReadProcess(options.pid); info.has_value())
      command =
          info->command.empty() ? fmt::format("[{}]", info->name) : info->command;  // of a kernel thread
  ASSIGN_OR_RETURN(
      Engine engine,
      Engine::Create({.spool_folder = options.spool_folder,
                      .frequency_hz = options.frequency_hz,
                      .nvml_hz = options.nvml_hz,
                      .command = std::move(command),
                      .lines = options.lines,
                      .files = options.files,
                      .may_lack_kernel =
                          [&options](const Error& error) { return MayRecordGpuOnly(error, options.command); },
                      .measure_epoch_offset = options.measure_epoch_offset}));
  Collector& collector = engine.collector();
  std::optional<Child> child;
  if (options.command.empty()) {
    std::vector<int32_t> running = proc::ListDescendants(options.pid);
    running.push_back(options.pid);
    collector.AwaitUnwindTables(running, kReadyMs);
    TRY(collector.Follow(options.pid));
    for (const int32_t descendant : proc::ListDescendants(options.pid)) (void)collector.Follow(descendant);
  } else {
    ASSIGN_OR_RETURN(const GpuChannel channel, collector.MakeGpuChannel());
    ASSIGN_OR_RETURN(child, Child::Prepare(options.command, channel.environment, options.ignored_signals));
    TRY(collector.Follow(child->pid()));
    TRY(collector.AttachGpuProgram(child->pid()));
  }
  engine.StartGpuMonitor();
  return Recorder(
      std::unique_ptr<State>(new State{std::move(options), std::move(engine), std::move(child), {}}));
}

Result<Recorder::Outcome> Recorder::Run(RecorderSignals& signals) {
  State& state = *state_;
  Collector& collector = state.engine.collector();
  const int64_t begin_ns = MonotonicNow();
  const int64_t stop_ns =
      state.options.duration_s.has_value()
          ? begin_ns + static_cast<int64_t>(*state.options.duration_s * static_cast<double>(kNanosPerSecond))
          : INT64_MAX;
  collector.Begin(begin_ns, stop_ns);
  LogInfo("recording began");
  if (const int number = state.StoppedBy(signals); number != 0) {
    TRY(state.Finish(signals));
    if (state.child.has_value()) state.outcome.exit_status = kSignalledExit + number;
    return state.outcome;
  }
  if (state.child.has_value()) {
    if (Status started = state.child->Start(); !started.has_value()) return Fail(std::move(started).error());
  }

  while (!state.Done(signals, stop_ns)) {
    const int64_t left_ms = std::max<int64_t>((stop_ns - MonotonicNow()) / kNanosPerMilli + 1, 0);
    collector.Wait(kMinRecorderRoundMs, static_cast<int>(std::min<int64_t>(kRecorderRoundMs, left_ms)),
                   signals.arrived.get());
    signals.arrived.Clear();
    state.PassOn(signals);
    if (MonotonicNow() < stop_ns) TRY(state.Gather());
  }
  TRY(state.Finish(signals));
  if (state.child.has_value()) {
    state.outcome.exit_status = state.child->TryWait();
    state.outcome.killed_by = state.child->killed_by();
    state.outcome.left_running = collector.living();
    std::erase_if(state.outcome.left_running, [&](int32_t pid) {
      return pid == state.child->pid() || !proc::ReadProcessStat(pid).has_value();
    });
  }
  state.outcome.clock_step_ns = state.engine.MeasureClockStep();
  return state.outcome;
}

Status Recorder::State::Gather() {
  ASSIGN_OR_RETURN(const std::vector<model::Batch> batches, engine.Gather());
  Write(batches);
  return {};
}

Status Recorder::State::Finish(const RecorderSignals& signals) {
  const int interrupts = signals.interrupts.load();
  bool announced = false;
  const int64_t announce_ns = MonotonicNow() + kAnnounceNs;
  const auto may_wait = [&] {
    if (!announced && interrupts > 0 && MonotonicNow() > announce_ns) {
      announced = true;
      LogWarn("still looking for names and lines; Ctrl-C ends the recording without them");
    }
    return signals.interrupts.load() == interrupts;
  };
  ASSIGN_OR_RETURN(const std::vector<model::Batch> last, engine.Finish(may_wait));
  outcome.uncounted_rows = Write(last);
  return {};
}

// A full disk doesn't end the recording: rows that don't fit are counted. Returns the number of lost rows.
int64_t Recorder::State::Write(const std::vector<model::Batch>& batches) {
  const spool::Writer::Stored stored = engine.Spool(batches);
  if (stored.failure.has_value() && outcome.first_failure.empty())
    outcome.first_failure = stored.failure->message;
  outcome.failed_rows += stored.lost_rows;
  return stored.lost_rows;
}

bool Recorder::State::Done(const RecorderSignals& signals, int64_t stop_ns) {
  if (MonotonicNow() >= stop_ns) return true;
  if (child.has_value()) return child->TryWait().has_value() || signals.interrupts.load() > 1;
  return engine.collector().living().empty() || signals.interrupts.load() > 0 ||
         signals.forward_signal.load() != 0;
}

int Recorder::State::StoppedBy(const RecorderSignals& signals) {
  if (const int number = signals.forward_signal.load(); number != 0) return number;
  return signals.interrupts.load() > 0 ? SIGINT : 0;
}

void Recorder::State::PassOn(RecorderSignals& signals) const {
  if (!child.has_value()) return;
  if (const int number = signals.forward_signal.exchange(0); number != 0) ::kill(child->pid(), number);
}

const std::string& Recorder::refusal() const { return state_->engine.refusal(); }

int Recorder::WaitForProgram(RecorderSignals& signals) {
  while (true) {
    if (const std::optional<int> status = state_->child->TryWait(); status.has_value()) return *status;
    state_->PassOn(signals);
    ::poll(nullptr, 0, kRecorderRoundMs);
  }
}

}  // namespace gpusonde::agent
