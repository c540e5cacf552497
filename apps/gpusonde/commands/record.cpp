// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/child.h"
#include "agent/recorder.h"
#include "base/disk.h"
#include "base/fd.h"
#include "base/heap.h"
#include "base/ignored_signal.h"
#include "base/printable.h"
#include "base/shell_word.h"
#include "command.h"
#include "exporters/summary.h"
#include "messages.h"
#include "model/metric_catalogue.h"
#include "server/api.h"
#include "server/gpu_facts.h"
#include "sources/cupti/inject_library.h"
#include "sources/proc/process.h"
#include "spool/segment.h"
#include "spool/spool.h"
#include "store/each_row.h"
#include "store/queries/profile_query.h"
#include "store/queries/usual_steps.h"
#include "store/recordings/recording.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr int kExitOwnFailure = 125;  // as env(1) and timeout(1) do

struct RecordOptions {
  std::string output = "run.sonde";
  std::vector<std::string> command;
  int32_t pid = 0;
  double duration_s = 0;
  double frequency_hz = 99;
  double nvml_hz = 10;
  bool recover = false;

  std::string spool_folder() const { return output + std::string(store::kSpoolEnding); }
};

agent::RecorderSignals signals;

// Ctrl-C in a terminal sends SIGINT to the profiled program too; kill(1) sends it only to us, so we forward
// it.
void OnSignal(int number, siginfo_t* info, void*) {
  const int error = errno;
  if (number == SIGINT) ++signals.interrupts;
  if (number != SIGCHLD && (number != SIGINT || info->si_code <= 0)) signals.forward_signal = number;
  signals.arrived.Signal();
  errno = error;
}

// Those that we catch though they are ignored, which is how a shell starts programs in a script's background.
std::vector<int> IgnoredAtStart() {
  std::vector<int> ignored;
  std::ranges::copy_if(std::array{SIGINT, SIGTERM, SIGCHLD}, std::back_inserter(ignored), IsIgnored);
  return ignored;
}

// During set-up, SA_RESTART keeps system calls from failing with EINTR. While recording, a signal must end
// the wait for the next round, so it is off.
void CatchSignals(int restart) {
  struct sigaction action{};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | restart;
  for (const int number : {SIGINT, SIGTERM, SIGCHLD}) ::sigaction(number, &action, nullptr);
  if (!IsIgnored(SIGHUP)) ::sigaction(SIGHUP, &action, nullptr);
  // Not ignored, which the program would inherit.
  if (!IsIgnored(SIGPIPE)) ::signal(SIGPIPE, [](int) {});
}

int FailRecord(const Error& error) {
  PrintError("record", error);
  return kExitOwnFailure;
}

// The sentences of incidents, those that cost most time first. Some last until `end_ns`.
Result<std::vector<std::string>> ReadIncidentSentences(store::Store& store, int64_t end_ns) {
  std::vector<std::string> sentences;
  const std::vector<store::Parameter> end = {end_ns};
  TRY(store::ForEachRow(
      store.Query("SELECT sentence FROM incidents WHERE NOT withdrawn "
                  "ORDER BY (1 - 1 / slowdown) * (coalesce(end_ns, ?) - start_ns) DESC, start_ns",
                  end),
      [&](const store::Rows& row) { sentences.emplace_back(row.Text(0)); }));
  return sentences;
}

exporters::SummaryFacts::Steps StepFactsOf(const std::vector<store::UsualSteps>& all) {
  const store::UsualSteps& most = all.front();
  exporters::SummaryFacts::Steps facts{
      .process = most.name, .count = most.steps, .time_ns = most.time_ns, .between_ns = most.between_ns};
  std::set<Id128> others;
  for (const store::UsualSteps& other : all | std::views::drop(1))
    if (other.process == most.process)
      ++facts.other_loops;
    else
      others.insert(other.process);
  facts.other_processes = std::ssize(others);
  for (const store::UsualSteps::Part& part : most.parts)
    facts.parts.emplace_back(model::LabelOf(part.state), part.time_ns);
  return facts;
}

// `uncounted_rows` were lost too late to be counted in the recording itself.
Status PrintSummary(store::Store& store, const std::string& path, int64_t uncounted_rows) {
  ASSIGN_OR_RETURN(const store::Overview overview, store::ReadOverview(store));
  ASSIGN_OR_RETURN(const model::Profile profile, store::ReadProfile(store, {}));
  exporters::SummaryFacts facts{.path = path};
  std::error_code ignored;
  facts.bytes = static_cast<int64_t>(std::filesystem::file_size(path, ignored));
  facts.duration_ns = overview.to_ns.value_or(0) - overview.from_ns.value_or(0);
  for (const auto& source : overview.sources) {
    facts.command = source.command;
    facts.cpus = source.cpus;
    facts.sampling_hz = source.sampling_hz.value_or(0);
  }
  const std::unique_ptr<server::ApiData> data = server::ReadingFrom(store);
  ASSIGN_OR_RETURN(facts.gpu, server::ReadGpuFacts(*data, {}, facts.sampling_hz > 0));
  ASSIGN_OR_RETURN(facts.incidents, ReadIncidentSentences(store, overview.to_ns.value_or(0)));
  ASSIGN_OR_RETURN(const store::SelectedSteps steps, store::ReadUsualSteps(store, {}));
  if (!steps.programs.empty()) facts.steps = StepFactsOf(steps.programs);
  for (const store::UsualSteps& of_process : steps.programs)
    for (const store::UsualSteps::Part& part : of_process.parts)
      if (!part.sentence.empty()) facts.incidents.push_back(part.sentence);
  for (const auto& drop : overview.drops)
    (drop.lost ? facts.lost : facts.poorer).push_back({drop.meaning, drop.count});
  if (uncounted_rows > 0)
    facts.lost.push_back({"Rows that could not be written when recording ended.", uncounted_rows});
  PrintLabelled(exporters::Summarise(profile, facts));
  return {};
}

// Says which program loaded CUDA without the library that the recorder gives to all that it starts: otherwise
// the summary of a GPU job has no word about its GPU.
Status WarnUnprofiledPrograms(store::Store& store) {
  return store::ForEachRow(
      store.Query("WITH loaded AS (SELECT process, name FROM mappings JOIN binaries USING (binary_id)) "
                  "SELECT pid, name FROM processes "
                  "WHERE process IN (SELECT process FROM loaded WHERE name LIKE 'libcuda.so%') AND "
                  "process NOT IN (SELECT process FROM loaded WHERE name = 'libgpusonde-inject.so') "
                  "ORDER BY started_ns, pid LIMIT 1"),
      [](const store::Rows& row) {
        PrintNotice(
            "record",
            fmt::format(
                "process {} ({}) loaded CUDA without gpusonde's library. If it used a GPU, that isn't "
                "recorded, because its environment lacked CUDA_INJECTION64_PATH={}: `sudo`, `env -i` "
                "and some job launchers clear it; start `gpusonde record` behind them",
                row.Int64(0), Printable(row.Text(1)),
                cupti::FindInjectLibrary().value_or("…/libgpusonde-inject.so")));
      });
}

// Turns the spool into the recording. On failure the spool stays and the error says how to continue from it.
Status FinishRecording(const RecordOptions& options, int64_t uncounted_rows) {
  const auto store = store::WriteAndReadRecording(options.spool_folder(), options.output);
  if (!store.has_value()) {
    Error error = store.error();
    error.message +=
        fmt::format("\nThe data is safe in {}; fix the problem, then run `gpusonde record --recover -o {}`",
                    options.spool_folder(), ShellWord(options.output));
    return Fail(std::move(error));
  }
  std::error_code failed;
  std::filesystem::remove_all(options.spool_folder(), failed);
  if (failed)
    PrintNotice("record",
                fmt::format("{} could not be removed: {}", options.spool_folder(), failed.message()));
  TRY(PrintSummary(**store, options.output, uncounted_rows));
  return options.pid == 0 ? WarnUnprofiledPrograms(**store) : Status();
}

// Locks the spool so that no other process writes to it meanwhile.
Result<Fd> LockSpool(const RecordOptions& options) {
  Result<Fd> lock = LockFolder(options.spool_folder(), "wait until it ends, or give another -o");
  if (lock.has_value() || lock.error().code != ErrorCode::kUnavailable) return lock;
  return Fail(ErrorCode::kUnavailable,
              fmt::format("another recorder is still writing {}: {}", options.output, lock.error().message));
}

int Recover(const RecordOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.spool_folder(), ignored))
    return FailRecord(
        {ErrorCode::kNotFound,
         fmt::format("no unfinished recording: {} doesn't exist; give the -o of the recording to "
                     "recover",
                     options.spool_folder())});
  const Result<Fd> lock = LockSpool(options);
  if (!lock.has_value()) return FailRecord(lock.error());
  const auto segments = spool::ListSegments(options.spool_folder());
  if (!segments.has_value()) return FailRecord(segments.error());
  if (segments->empty()) {
    std::filesystem::remove_all(options.spool_folder(), ignored);
    return FailRecord(
        {ErrorCode::kNotFound,
         fmt::format("nothing to recover: {} held no data and was removed", options.spool_folder())});
  }
  if (const Status finished = FinishRecording(options, 0); !finished.has_value())
    return FailRecord(finished.error());
  return kExitOk;
}

// A spool left by a crash may hold the only copy of its data; a new recording must neither mix with it nor
// replace it.
Status CheckOutput(const RecordOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(options.output, ignored))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("-o {} is a folder; give a file name", options.output));
  TRY(store::CheckRecordingName(options.output));
  TRY(CheckFolderOf(options.output));
  const std::string folder = FolderOf(options.output);
  if (::access(folder.c_str(), W_OK) != 0) {
    Error error = ErrnoError(errno, "write in the folder " + folder);
    error.message += "; give another file with -o";
    return Fail(std::move(error));
  }
  TRY(CheckReplaceable(options.output));
  if (!std::filesystem::exists(options.spool_folder(), ignored)) return {};
  TRY(LockSpool(options));
  ASSIGN_OR_RETURN(const bool any, spool::HasFrames(options.spool_folder()));
  if (!any) return {};  // left by a recorder that could not start
  return Fail(
      ErrorCode::kUnavailable,
      fmt::format("{0} holds an unfinished recording whose recorder was killed.\n"
                  "Run `gpusonde record --recover -o {1}` to finish it, or remove the folder, or give "
                  "another -o",
                  options.spool_folder(), ShellWord(options.output)));
}

// Removes the empty spool that a recorder leaves when it can't start.
void RemoveEmptySpool(const RecordOptions& options) {
  const Result<bool> any = spool::HasFrames(options.spool_folder());
  std::error_code ignored;
  if (any.has_value() && !*any) std::filesystem::remove_all(options.spool_folder(), ignored);
}

// The CUDA driver reads its environment once, so nothing can be changed for a program that runs.
void WarnUnprofiledCuda(int32_t pid) {
  std::vector<int32_t> pids = proc::ListDescendants(pid);
  pids.insert(pids.begin(), pid);
  const auto unprofiled = std::ranges::find_if(pids, [](int32_t each) {
    const Result<std::vector<proc::MappedFile>> files = proc::ReadExecutableMappings(each);
    return files.has_value() && cupti::UsesCudaWithoutInjection(each, *files);
  });
  if (unprofiled == pids.end()) return;
  PrintNotice(
      "record",
      fmt::format("process {} uses CUDA, but was started without CUDA_INJECTION64_PATH: its GPU work isn't "
                  "recorded, only its CPU time. Start it with CUDA_INJECTION64_PATH={}, or with "
                  "`gpusonde record -- COMMAND`",
                  *unprofiled, cupti::FindInjectLibrary().value_or("…/libgpusonde-inject.so")));
}

void PrintNotices(const agent::Recorder::Outcome& outcome) {
  if (outcome.failed_rows > 0)
    PrintNotice("record",
                fmt::format("{} rows could not be written: {}", outcome.failed_rows, outcome.first_failure));
  if (outcome.clock_step_ns != 0)
    PrintNotice("record",
                fmt::format("the wall clock was set by {:+.3f} s while recording; times in the recording "
                            "follow the clock before that change",
                            static_cast<double>(outcome.clock_step_ns) / kNanosPerSecond));
}

// A shell says why a program that it runs was killed; of one that we run it only sees our exit status.
// Signals by which people end programs, and the end of a pipe, are no news.
void PrintKilled(const agent::Recorder::Outcome& outcome) {
  constexpr std::array kUsual = {0, SIGHUP, SIGINT, SIGPIPE, SIGTERM};
  if (std::ranges::find(kUsual, outcome.killed_by) != kUsual.end()) return;
  std::string text = fmt::format("the program was killed by signal {}", outcome.killed_by);
  if (const char* const name = ::sigdescr_np(outcome.killed_by)) text += fmt::format(" ({})", name);
  if (outcome.killed_by == SIGKILL)
    text += "; if nobody sent it, the kernel did, for want of memory: `dmesg` says so";
  PrintNotice("record", text);
}

// To be called once the recording is written: helpers such as the resource tracker of Python's
// multiprocessing end a moment after their program.
void PrintStillRunning(const agent::Recorder::Outcome& outcome) {
  std::vector<int32_t> pids = outcome.left_running;
  std::erase_if(pids, [](int32_t pid) {
    const Result<proc::ProcessInfo> process = proc::ReadProcessStat(pid);
    return !process.has_value() || process->state == 'Z';
  });
  if (outcome.exit_status.has_value() && !pids.empty())
    PrintNotice("record",
                pids.size() == 1
                    ? fmt::format("the program has ended, but process {0} that it started still runs, not "
                                  "recorded any more; record it with -p {0}",
                                  pids.front())
                    : fmt::format("the program has ended, but {} processes that it started still run, not "
                                  "recorded any more; record one with -p {}",
                                  pids.size(), pids.front()));
}

int Record(const RecordOptions& options) {
  ReturnMemoryEarly();
  std::vector<int> ignored_signals = IgnoredAtStart();
  CatchSignals(SA_RESTART);  // before creating anything that a signal could leave behind
  if (const Status free = CheckOutput(options); !free.has_value()) return FailRecord(free.error());
  Result<agent::Recorder> recorder = agent::Recorder::Create(
      {.spool_folder = options.spool_folder(),
       .frequency_hz = options.frequency_hz,
       .nvml_hz = options.nvml_hz,
       .command = options.command,
       .ignored_signals = std::move(ignored_signals),
       .pid = options.pid,
       .duration_s = options.duration_s > 0 ? std::optional(options.duration_s) : std::nullopt,
       .lines = OwnLines(),
       .files = OwnFiles(agent::FilePriority::kNormal)});
  if (!recorder.has_value()) {
    // Keep the spool of another recorder that started after CheckOutput.
    if (recorder.error().code != ErrorCode::kUnavailable) RemoveEmptySpool(options);
    return FailRecord(recorder.error());
  }

  if (!recorder->refusal().empty())
    PrintNotice("record", fmt::format("recording GPU work only, without the stacks that launched it: {}",
                                      recorder->refusal()));
  if (options.pid != 0) WarnUnprofiledCuda(options.pid);
  CatchSignals(0);
  const auto outcome = recorder->Run(signals);
  CatchSignals(SA_RESTART);
  if (!outcome.has_value()) {
    std::error_code ignored;
    std::filesystem::remove_all(options.spool_folder(), ignored);
    FailRecord(outcome.error());
    return outcome.error().code == ErrorCode::kNotFound ? agent::Child::kNotFound
                                                        : agent::Child::kNotExecutable;
  }
  PrintNotices(*outcome);
  const Status finished = FinishRecording(options, outcome->uncounted_rows);
  const bool program_runs_on = !options.command.empty() && !outcome->exit_status.has_value();
  if (!finished.has_value()) FailRecord(finished.error());
  PrintKilled(*outcome);
  PrintStillRunning(*outcome);
  if (program_runs_on) {
    PrintNotice("record", "done; the program keeps running");
    return recorder->WaitForProgram(signals);
  }
  if (!finished.has_value()) return kExitOwnFailure;
  return outcome->exit_status.value_or(kExitOk);
}

}  // namespace

void AddRecord(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* command = app.add_subcommand("record", "Profile one program into a recording");
  command->footer(
      "Examples:\n"
      "  gpusonde record -o run.sonde -- python3 train.py\n"
      "  gpusonde record -o run.sonde -p 4711 --duration 30\n"
      "  gpusonde record --recover -o run.sonde     # after a crash\n\n"
      "Without privileges (see `gpusonde doctor`), it records only the GPU work of a program given after "
      "--.\n"
      "Exits with the program's status; 125 if gpusonde itself fails, 126 or 127 if the program can't be "
      "started.");
  command->add_option("-o,--output", options->output, "The recording to write; replaces an older one")
      ->check(Path())
      ->capture_default_str();
  command->add_option("-p,--pid", options->pid, "Profile this process and its children")
      ->check(WholeNumber("PID", 1, kMaxPid));
  command
      ->add_option("--duration", options->duration_s,
                   "Stop recording after this many seconds; the program keeps running")
      ->check(PositiveNumber("SECONDS"));
  command->add_option("--hz", options->frequency_hz, "Samples per second on each CPU")
      ->capture_default_str()
      ->check(Number("HZ", 0.1, 10'000));
  command->add_option("--nvml-hz", options->nvml_hz, "NVML readings (clocks, power, …) per second; 0: none")
      ->capture_default_str()
      ->check(Number("HZ", 1, 10, true));
  command->add_flag("--recover", options->recover, "Finish the recording that a crash interrupted");
  command->add_option("COMMAND", options->command, "The program to run and its arguments, after --");
  command->callback([options, &exit_status] {
    if (options->recover && (options->pid != 0 || !options->command.empty()))
      throw CLI::ValidationError("--recover finishes a recording; it takes neither a program nor -p");
    if (options->pid != 0 && !options->command.empty())
      throw CLI::ValidationError("give either a program after -- or -p PID, not both");
    if (options->recover) {
      exit_status = Recover(*options);
    } else if (options->command.empty() && options->pid == 0) {
      throw CLI::RequiredError("a program after --, or -p PID,");
    } else {
      exit_status = Record(*options);
    }
  });
}

}  // namespace gpusonde::app
