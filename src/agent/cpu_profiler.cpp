// SPDX-License-Identifier: Apache-2.0
#include "agent/cpu_profiler.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <future>
#include <limits>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "agent/gpu_rows.h"
#include "agent/kernel_side.h"
#include "agent/off_cpu_rows.h"
#include "agent/proc_events.h"
#include "agent/process_table.h"
#include "agent/rows.h"
#include "agent/stack_describer.h"
#include "agent/stack_interner.h"
#include "agent/stack_trim.h"
#include "base/log.h"
#include "base/time.h"
#include "base/version.h"
#include "sources/cupti/gpu_events.h"
#include "sources/cupti/inject_library.h"
#include "sources/perf/sideband.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

constexpr int kHurryMs = 10;
// While files are being read: stacks are incomplete until the kernel has their unwind tables.
constexpr int kReadingMs = 100;
// How long an injected program takes to flush its batches once it has begun.
constexpr int64_t kFlushNs = 10 * kNanosPerMilli;
// How long the end of a recording waits for source lines and symbols.
constexpr int64_t kMaxLinesWaitNs = 15 * kNanosPerSecond;
constexpr int64_t kMaxSymbolsWaitNs = 5 * kNanosPerSecond;

// Reading /proc for 10,000 threads takes 0.1 s, and losses come in bursts.
constexpr int64_t kResyncIntervalNs = kNanosPerSecond;

// A raw sample that waits to be processed in time order; the words of its stack are in State::words.
struct Pending {
  int64_t time_ns;
  int32_t pid, tid, cpu;
  size_t first_word, words;
  gpusonde_stack_counts counts;
  // The index in State::calls of the call or graph node that has this stack; none for a sample of the CPU
  // clock.
  std::optional<size_t> call;
  // Set for a thread that left its CPU.
  std::optional<gpusonde_off_cpu_head> away = {};
};

// A call or graph node that waits for its stack to be processed, with copies of the texts it refers to.
struct PendingCall {
  cupti::Event event;
  std::string domain, name;
};

Result<cupti::GpuEvents> OpenGpuEvents(const ebpf::StackTables* tables, bool every_process) {
  const std::optional<std::string> library = cupti::FindInjectLibrary();
  if (!library.has_value())
    return Fail(ErrorCode::kNotFound, "libgpusonde-inject.so is not in the folder of this program");
  return cupti::GpuEvents::Create({.library_path = *library, .every_process = every_process}, tables);
}

// If the library is missing or the kernel refuses, profiles have no GPU work.
std::optional<cupti::GpuEvents> OrWithout(Result<cupti::GpuEvents> events) {
  if (events.has_value()) return std::move(*events);
  LogWarn("GPU work is not profiled: {}", events.error().message);
  return std::nullopt;
}

}  // namespace

struct CpuProfiler::State {
  State(std::optional<KernelSide> kernel_in, StackInterner::KernelSymbolsLater symbols,
        std::optional<cupti::GpuEvents> gpu_in, model::Source source_in, const Options& options)
      : every_process(options.every_process),
        kernel(std::move(kernel_in)),
        gpu(std::move(gpu_in)),
        source(std::move(source_in)),
        files(options.files),
        binaries(&files),
        processes({.host = proc::ReadHost(),
                   .source = source.source,
                   .epoch_offset_ns = source.epoch_offset_ns,
                   .every_process = every_process},
                  binaries, rows),
        lines(options.lines),
        stacks(std::move(symbols), binaries, lines, rows),
        gpu_rows({.source = source.source,
                  .host = source.host,
                  .epoch_offset_ns = source.epoch_offset_ns,
                  .pack_kernels = every_process,
                  .devices = options.devices},
                 rows, drops),
        off_cpu_rows(source.epoch_offset_ns, rows) {
    if (kernel.has_value()) describer.emplace(kernel->tables, files, processes);
  }

  bool every_process;
  // Samples outside [begin_ns, end_ns) are dropped. CLOCK_MONOTONIC.
  int64_t begin_ns = 0;
  int64_t end_ns = std::numeric_limits<int64_t>::max();
  // Programs load most of their code when they start, and their stacks break off until the kernel has its
  // unwind tables.
  int64_t hurry_until_ns = MonotonicNow() + 3 * kNanosPerSecond;
  std::optional<KernelSide> kernel;
  std::optional<cupti::GpuEvents> gpu;
  ProcEvents proc_events;  // used without the kernel side
  model::Source source;
  Rows rows;
  symbols::FileReader files;
  symbols::BinaryTable binaries;
  ProcessTable processes;
  std::optional<StackDescriber> describer;
  symbols::LineClient lines;
  StackInterner stacks;
  model::DropCounts drops;
  GpuRows gpu_rows;
  OffCpuRows off_cpu_rows;

  std::vector<uint64_t> words;
  std::vector<Pending> samples;
  std::unordered_set<Process*> sampled;  // in this round
  std::unordered_set<int32_t> waiting;   // processes described without files that are still being read
  std::vector<PendingCall> calls;
  std::vector<ebpf::OffCpu::End> ends;               // of off-CPU times
  std::vector<int32_t> ended_threads;                // in this round
  std::unordered_map<int32_t, Id128> gpu_processes;  // running ones that reported GPU work, by pid
  std::vector<int32_t> beginning;                // processes whose GPU work is observed from this round on
  std::vector<std::pair<int32_t, Id128>> ended;  // processes that ended in this round or the one before
  std::vector<perf::SidebandEvent> events;
  size_t next_event = 0;                             // the next to apply in this round
  size_t next_end = 0;                               // likewise
  std::unordered_map<int32_t, int64_t> replaced_ns;  // time of an exec in this round, by pid

  int64_t events_lost = 0;  // as of the last resync
  int64_t resynced_ns = 0;  // CLOCK_MONOTONIC

  Status gathered;            // result of the last Gather during a wait
  bool work_arrived = false;  // GPU work arrived during this wait
  Status Gather(int64_t until_ns);
  std::vector<model::Batch> DrainRows();
  void Apply(const perf::SidebandEvent& event);
  void ProcessSample(const Pending& sample);
  Status DrainSamples();
  Status DrainOffCpu();
  Status DrainGpu();
  void ApplyEnds(int64_t until_ns);
  void ResyncAfterLoss();
  void Describe(Process& process);
  void AttachLibrary(int32_t pid, const std::string& path);
  void AttachMapped(int32_t pid);
  void EnableLaunchStacks(int32_t pid);
  void EndGpuWork(int32_t pid);
  void FinishEnded(size_t count);
  void Forget(size_t count);
  void IngestLines();
  void AwaitSymbols(const std::function<bool()>& may_wait);
  void AwaitLines(const std::function<bool()>& may_wait);
  void WriteDrops();
};

CpuProfiler::CpuProfiler(std::unique_ptr<State> state) : state_(std::move(state)) {}
CpuProfiler::CpuProfiler(CpuProfiler&&) noexcept = default;
CpuProfiler& CpuProfiler::operator=(CpuProfiler&&) noexcept = default;
CpuProfiler::~CpuProfiler() = default;

Result<CpuProfiler> CpuProfiler::Create(const Options& options) {
  const proc::HostInfo host = proc::ReadHost();
  model::Source source{
      .kind = options.every_process ? model::SourceKind::kAgent : model::SourceKind::kRecord,
      .host = host.name,
      .boot_id = host.boot_id,
      .kernel = host.kernel_release,
      .version = std::string(kVersion),
      .cpus = host.cpus,
      .sampling_hz = options.with_kernel ? std::optional(options.frequency_hz) : std::nullopt,
      .command = options.command.empty() ? std::nullopt : std::optional(options.command),
      .epoch_offset_ns = options.epoch_offset_ns};
  source.started_ns = MonotonicNow() + source.epoch_offset_ns;
  source.source = IdHasher("source").Add(host.boot_id).Add(static_cast<uint64_t>(source.started_ns)).Finish();

  std::optional<KernelSide> kernel;
  std::optional<Result<cupti::GpuEvents>> gpu;
  StackInterner::KernelSymbolsLater symbols;
  if (options.with_kernel) {
    // Load in parallel, on threads of their own, while the kernel verifies our other programs; each takes
    // about 0.03 s.
    symbols = std::async(std::launch::async, symbols::KernelSymbols::Load);
    ASSIGN_OR_RETURN(kernel, KernelSide::Create(options, [&](const ebpf::StackTables& tables) {
                       gpu = OpenGpuEvents(&tables, options.every_process);
                     }));
  } else {
    gpu = OpenGpuEvents(nullptr, options.every_process);
  }
  auto state = std::make_unique<State>(std::move(kernel), std::move(symbols), OrWithout(std::move(*gpu)),
                                       std::move(source), options);
  if (options.every_process) {
    state->rows.sources.Append(state->source);
    for (const int32_t pid : proc::ListProcesses()) state->AttachMapped(pid);
  }
  return CpuProfiler(std::move(state));
}

Status CpuProfiler::Follow(int32_t pid) {
  TRY(state_->processes.Follow(pid));
  state_->AttachMapped(pid);
  if (state_->kernel.has_value()) return state_->kernel->sampler.Follow(pid);
  state_->proc_events.Follow(pid);
  return {};
}

void CpuProfiler::Begin(int64_t begin_ns, int64_t end_ns) {
  state_->begin_ns = begin_ns;
  state_->end_ns = end_ns;
  state_->off_cpu_rows.set_limits(begin_ns, end_ns);
  state_->source.started_ns = begin_ns + state_->source.epoch_offset_ns;
  state_->rows.sources.Append(state_->source);
}

Result<CpuProfiler::GpuChannel> CpuProfiler::MakeGpuChannel() {
  const std::optional<std::string> library = cupti::FindInjectLibrary();
  if (!state_->gpu.has_value() || !library.has_value()) return GpuChannel{};
  ASSIGN_OR_RETURN(cupti::GpuEvents::Inheritance inheritance, state_->gpu->MakeSocket());
  GpuChannel channel{.socket = std::move(inheritance.fd), .environment = cupti::InjectEnvironment(*library)};
  channel.environment.push_back(std::move(inheritance.environment));
  return channel;
}

Status CpuProfiler::AttachGpuProgram(int32_t pid) {
  return state_->gpu.has_value() ? state_->gpu->AttachBeforeExec(pid) : Status();
}

Result<std::vector<model::Batch>> CpuProfiler::Poll() {
  TRY(std::exchange(state_->gathered, {}));
  TRY(state_->Gather(MonotonicNow()));
  return state_->DrainRows();
}

Result<std::vector<model::Batch>> CpuProfiler::Finish(const std::function<bool()>& may_wait) {
  if (state_->kernel.has_value()) state_->kernel->Stop();
  if (state_->gpu.has_value()) state_->gpu->Stop();
  state_->source.ended_ns = std::min(MonotonicNow(), state_->end_ns) + state_->source.epoch_offset_ns;
  state_->rows.sources.Append(state_->source);
  TRY(state_->Gather(std::numeric_limits<int64_t>::max()));
  // Exit events may be among the lost ones.
  if (state_->kernel.has_value() && state_->kernel->sideband.lost() > 0)
    state_->processes.Resync(MonotonicNow());
  state_->FinishEnded(state_->ended.size());
  state_->gpu_rows.FinishAll();
  state_->AwaitSymbols(may_wait);
  state_->AwaitLines(may_wait);
  return state_->DrainRows();
}

void CpuProfiler::Rewrite() {
  state_->rows.sources.Append(state_->source);
  state_->processes.Rewrite();
  state_->stacks.Rewrite();
  state_->off_cpu_rows.Rewrite(state_->stacks.UnknownStack(), [this](int32_t pid, const Id128& process) {
    state_->processes.WriteAgain(pid, process);
  });
  state_->gpu_rows.Rewrite();
}

void CpuProfiler::CountFailedRows(int64_t rows) { state_->drops.Add(model::DropReason::kSpoolFailed, rows); }

Id128 CpuProfiler::source() const { return state_->source.source; }

bool CpuProfiler::any_alive() const { return state_->processes.any_alive(); }

void CpuProfiler::Wait(int min_ms, int max_ms, int interrupt_fd) {
  std::vector<pollfd> fds{{.fd = interrupt_fd, .events = POLLIN, .revents = 0}};
  if (state_->gpu.has_value()) fds.push_back({.fd = state_->gpu->wake_fd(), .events = POLLIN, .revents = 0});
  if (state_->kernel.has_value()) {
    for (const int fd : state_->kernel->wake_fds()) fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
  const int64_t begin_ns = MonotonicNow();
  const int64_t min_ns = begin_ns + min_ms * kNanosPerMilli;
  int64_t until_ns = begin_ns + max_ms * kNanosPerMilli;
  if (state_->gpu.has_value()) state_->gpu->WakeAfter(min_ns);
  state_->work_arrived = false;
  for (int left_ms = max_ms; left_ms > 0 && state_->gathered.has_value();
       left_ms = static_cast<int>((until_ns - MonotonicNow()) / kNanosPerMilli)) {
    const bool hurry =
        !state_->every_process && state_->kernel.has_value() && MonotonicNow() < state_->hurry_until_ns;
    const int longest_ms = state_->files.idle() ? left_ms : kReadingMs;
    const int step_ms = std::min(left_ms, hurry ? kHurryMs : longest_ms);
    const int ready = ::poll(fds.data(), fds.size(), step_ms);
    if (ready < 0 || (ready == 0 && step_ms == left_ms) || fds.front().revents != 0) return;
    state_->gathered = state_->Gather(MonotonicNow());
    if (state_->work_arrived) until_ns = std::min(until_ns, std::max(min_ns, MonotonicNow() + kFlushNs));
  }
}

// Samples and events arrive in different per-CPU buffers and must be merged in time order, because a stack is
// resolved with the mappings at the time of its sample. All records stamped before `until_ns` are in the
// buffers when they are read, samples first; later records wait for the next round.
Status CpuProfiler::State::Gather(int64_t until_ns) {
  TRY(DrainSamples());
  TRY(DrainOffCpu());
  const size_t ended_before = ended.size();
  TRY(DrainGpu());
  if (kernel.has_value())
    kernel->sideband.Drain(events);
  else
    proc_events.Poll(events);
  std::ranges::stable_sort(samples, {}, &Pending::time_ns);
  std::ranges::stable_sort(events, {}, &perf::SidebandEvent::time_ns);

  replaced_ns.clear();
  for (const perf::SidebandEvent& event : events)
    if (const auto* comm = std::get_if<perf::CommEvent>(&event.what); comm != nullptr && comm->exec)
      replaced_ns[comm->pid] = event.time_ns;

  std::ranges::stable_sort(ends, {}, &ebpf::OffCpu::End::end_ns);

  size_t next_sample = 0;
  next_event = 0;
  next_end = 0;
  for (; next_sample < samples.size() && samples[next_sample].time_ns <= until_ns; ++next_sample) {
    const Pending& sample = samples[next_sample];
    for (; next_event < events.size() && events[next_event].time_ns <= sample.time_ns; ++next_event)
      Apply(events[next_event]);
    ApplyEnds(sample.time_ns - 1);
    ProcessSample(sample);
  }
  for (; next_event < events.size() && events[next_event].time_ns <= until_ns; ++next_event)
    Apply(events[next_event]);
  ResyncAfterLoss();
  ApplyEnds(until_ns);
  ends.erase(ends.begin(), ends.begin() + static_cast<ptrdiff_t>(next_end));
  for (const int32_t tid : std::exchange(ended_threads, {})) off_cpu_rows.Forget(tid);
  Forget(next_sample);
  FinishEnded(ended_before);
  // Attach again with the current mappings: files mapped since may be in the next stacks.
  for (const int32_t pid : beginning)
    if (processes.Runs(pid)) sampled.insert(&processes.FindSampled(pid, MonotonicNow()));
  files.Exchange();
  for (const int32_t pid : std::exchange(waiting, {}))
    if (processes.Runs(pid)) sampled.insert(&processes.FindSampled(pid, MonotonicNow()));
  for (Process* process : sampled) Describe(*process);
  sampled.clear();
  for (const int32_t pid : std::exchange(beginning, {})) EnableLaunchStacks(pid);
  events.erase(events.begin(), events.begin() + static_cast<ptrdiff_t>(next_event));
  return {};
}

// After events were lost, threads and mappings are missing and ended processes seem to run.
void CpuProfiler::State::ResyncAfterLoss() {
  const int64_t now_ns = MonotonicNow();
  if (!kernel.has_value() || kernel->sideband.lost() == events_lost ||
      now_ns - resynced_ns < kResyncIntervalNs)
    return;
  events_lost = kernel->sideband.lost();
  resynced_ns = now_ns;
  for (const int32_t pid : processes.Resync(now_ns)) {
    describer->Forget(pid);
    EndGpuWork(pid);
  }
}

void CpuProfiler::State::EndGpuWork(int32_t pid) {
  if (auto process = gpu_processes.extract(pid); !process.empty()) ended.emplace_back(pid, process.mapped());
}

// Finishes processes that ended before the last drain, which thus returned all that they sent.
void CpuProfiler::State::FinishEnded(size_t count) {
  for (const auto& [pid, process] : std::span(ended).first(count)) {
    gpu_rows.Finish(process);
    if (gpu.has_value() && !processes.Runs(pid)) gpu->Forget(pid);
  }
  ended.erase(ended.begin(), ended.begin() + static_cast<ptrdiff_t>(count));
}

// Applies the ends up to `until_ns` in time order. Their begins are among the samples up to then. They are
// not applied after all samples of the round, or so many later begins could arrive that the oldest would be
// evicted first.
void CpuProfiler::State::ApplyEnds(int64_t until_ns) {
  for (; next_end < ends.size() && static_cast<int64_t>(ends[next_end].end_ns) <= until_ns; ++next_end)
    off_cpu_rows.End(ends[next_end]);
}

void CpuProfiler::State::IngestLines() {
  lines.Exchange([this](const symbols::LineClient::Answer& answer) { stacks.IngestLines(answer, drops); });
}

// Waits for the symbols of the last samples.
void CpuProfiler::State::AwaitSymbols(const std::function<bool()>& may_wait) {
  const int64_t until_ns = MonotonicNow() + kMaxSymbolsWaitNs;
  for (stacks.TakeSymbols(drops); stacks.files_awaited() > 0 && MonotonicNow() < until_ns && may_wait();
       stacks.TakeSymbols(drops)) {
    files.Wait(kHurryMs);
    files.Exchange();
  }
  drops.Add(model::DropReason::kUnreadableBinary, static_cast<int64_t>(stacks.files_awaited()));
}

// Waits for the lines of the last samples.
void CpuProfiler::State::AwaitLines(const std::function<bool()>& may_wait) {
  const int64_t until_ns = MonotonicNow() + kMaxLinesWaitNs;
  for (IngestLines(); !lines.idle() && MonotonicNow() < until_ns && may_wait(); IngestLines())
    lines.Wait(kHurryMs);
  drops.Add(model::DropReason::kLinesLate, static_cast<int64_t>(lines.waiting()));
}

Status CpuProfiler::State::DrainSamples() {
  if (!kernel.has_value()) return {};
  return kernel->sampler.Drain([this](const ebpf::RawSample& sample) {
    const std::span<const uint64_t> stack = sample.stack.words();
    samples.push_back({sample.time_ns, sample.pid, sample.tid, sample.cpu, words.size(), stack.size(),
                       sample.stack.counts(), std::nullopt});
    words.insert(words.end(), stack.begin(), stack.end());
  });
}

std::vector<model::Batch> CpuProfiler::State::DrainRows() {
  files.Exchange();
  stacks.TakeSymbols(drops);
  IngestLines();
  gpu_rows.Flush();
  processes.WriteChanges();
  WriteDrops();
  return rows.Take();
}

void CpuProfiler::State::Apply(const perf::SidebandEvent& event) {
  processes.Apply(event);
  if (describer.has_value()) describer->Follow(event);
  if (const auto* exit = std::get_if<perf::ExitEvent>(&event.what); exit != nullptr) {
    ended_threads.push_back(exit->tid);
    if (!processes.Runs(exit->pid)) EndGpuWork(exit->pid);
  }
  const auto* comm = std::get_if<perf::CommEvent>(&event.what);
  if (comm != nullptr && !kernel.has_value() && gpu.has_value() && comm->name == cupti::kLibraryThread &&
      processes.Runs(comm->pid) && !gpu->HasSocket(comm->pid))
    drops.Add(model::DropReason::kGpuProgramUnheard);
  const auto* map = std::get_if<perf::MapEvent>(&event.what);
  // A program that the user named is described before its first sample. When profiling the whole machine it
  // isn't: most processes are never sampled.
  if (map != nullptr && !every_process && processes.Runs(map->pid))
    sampled.insert(&processes.FindSampled(map->pid, event.time_ns));
  if (map != nullptr && processes.Runs(map->pid)) AttachLibrary(map->pid, map->path);
}

// Attaches to a process that has mapped this file if the file is our injected library.
void CpuProfiler::State::AttachLibrary(int32_t pid, const std::string& path) {
  if (!gpu.has_value() || !cupti::LooksLikeInjectLibrary(path)) return;
  const Result<bool> attached = gpu->Consider(pid, path);
  if (!attached.has_value() && attached.error().code != ErrorCode::kNotFound)
    LogWarn("GPU work of process {} is not profiled: {}", pid, attached.error().message);
}

// Attaches to a process for files that it mapped before profiling started.
void CpuProfiler::State::AttachMapped(int32_t pid) {
  if (!gpu.has_value()) return;
  const Result<std::vector<proc::MappedFile>> mapped = proc::ReadExecutableMappings(pid);
  if (!mapped.has_value()) return;  // it has ended
  for (const proc::MappedFile& file : *mapped) AttachLibrary(pid, file.path);
}

// Called when the process has been described to the kernel, so its stacks can be unwound.
void CpuProfiler::State::EnableLaunchStacks(int32_t pid) {
  const Status attached = gpu->EnableLaunchStacks(pid);
  if (!attached.has_value() && attached.error().code != ErrorCode::kNotFound)
    LogWarn("no call stacks for the GPU work of process {}: {}", pid, attached.error().message);
}

// Removes the first `count` samples and moves the words and calls of the others to the front.
void CpuProfiler::State::Forget(size_t count) {
  samples.erase(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(count));
  std::vector<uint64_t> kept;
  std::vector<PendingCall> kept_calls;
  for (Pending& sample : samples) {
    const auto first = words.begin() + static_cast<ptrdiff_t>(sample.first_word);
    sample.first_word = kept.size();
    kept.insert(kept.end(), first, first + static_cast<ptrdiff_t>(sample.words));
    if (!sample.call.has_value()) continue;
    kept_calls.push_back(std::move(calls[*sample.call]));
    sample.call = kept_calls.size() - 1;
  }
  words = std::move(kept);
  calls = std::move(kept_calls);
}

Status CpuProfiler::State::DrainOffCpu() {
  if (!kernel.has_value() || !kernel->off_cpu.has_value()) return {};
  return kernel->off_cpu->Drain(
      [this](const ebpf::OffCpu::Begin& begin) {
        const std::span<const uint64_t> stack = begin.stack.words();
        samples.push_back({static_cast<int64_t>(begin.taken_ns), static_cast<int32_t>(begin.head.pid),
                           static_cast<int32_t>(begin.head.tid), static_cast<int32_t>(begin.head.cpu),
                           words.size(), stack.size(), begin.stack.counts(), std::nullopt, begin.head});
        words.insert(words.end(), stack.begin(), stack.end());
      },
      [this](const ebpf::OffCpu::End& end) { ends.push_back(end); });
}

// Events that need no stack become rows at once. Calls with a stack wait to be processed among the samples,
// because a stack is resolved with the mappings at its time.
Status CpuProfiler::State::DrainGpu() {
  if (!gpu.has_value()) return {};
  const int64_t now_ns = MonotonicNow();
  int32_t last_pid = 0;  // hundreds of records in a row come from one process
  Id128 last_process;
  TRY(gpu->Drain([&](const cupti::Event& event) {
    const auto* call = std::get_if<cupti::Call>(&event.what);
    const auto* node = std::get_if<cupti::GraphNode>(&event.what);
    const bool is_work = call == nullptr && node == nullptr;
    work_arrived |= is_work;
    if (std::holds_alternative<cupti::SessionBegin>(event.what)) beginning.push_back(event.pid);
    if (is_work || !event.stack_taken) {
      if (event.pid != last_pid)
        gpu_processes[event.pid] = last_process = processes.FindSampled(event.pid, now_ns).id;
      last_pid = event.pid;
      gpu_rows.Ingest(event, last_process, std::nullopt);
      return;
    }
    const std::span<const uint64_t> stack = event.stack.words();
    samples.push_back({call != nullptr ? call->end_ns : node->created_ns, event.pid, event.tid, 0,
                       words.size(), stack.size(), event.stack.counts(), calls.size()});
    words.insert(words.end(), stack.begin(), stack.end());
    calls.push_back({event, call != nullptr ? std::string(call->domain) : "",
                     call != nullptr ? std::string(call->name) : ""});
  }));
  drops.Merge(gpu->TakeDrops());
  return {};
}

void CpuProfiler::State::ProcessSample(const Pending& sample) {
  const bool of_clock = !sample.call.has_value() && !sample.away.has_value();
  if (of_clock && (sample.time_ns < begin_ns || sample.time_ns > end_ns)) return;
  Process& process = processes.FindSampled(sample.pid, sample.time_ns);
  // Describe the process before reading symbols, which takes longer: its stacks break off until then. Not if
  // a later exec in this round replaces the process.
  const auto replaced = replaced_ns.find(sample.pid);
  if (replaced == replaced_ns.end() || replaced->second <= sample.time_ns) Describe(process);
  sampled.insert(&process);
  if (sample.counts.python_end == GPUSONDE_PYTHON_UNKNOWN) processes.RefreshPython(process);
  CountEnds(process, sample.counts, drops);
  gpusonde_stack_counts counts = sample.counts;
  std::span<uint64_t> frames = std::span(words).subspan(sample.first_word, sample.words);
  if (sample.call.has_value()) HideObservers(process, counts, frames);
  if (sample.away.has_value()) {
    const size_t watchers = stacks.CountSchedulerWatchers(frames.first(counts.kernel_frames));
    counts.kernel_frames = static_cast<uint16_t>(counts.kernel_frames - watchers);
    frames = frames.subspan(watchers);
  }
  const ebpf::RawStack raw(counts, frames);
  const bool not_taken = sample.away.has_value() && sample.words == 0;
  const Id128 stack = not_taken ? stacks.UnknownStack() : stacks.Intern(process, raw, drops);
  if (sample.away.has_value()) {
    off_cpu_rows.Begin(*sample.away, process.id, stack, IsInCudaCall(process, raw.user()));
    return;
  }
  if (sample.call.has_value()) {
    PendingCall& pending = calls[*sample.call];
    if (auto* call = std::get_if<cupti::Call>(&pending.event.what)) {
      call->domain = pending.domain;
      call->name = pending.name;
    }
    gpu_rows.Ingest(pending.event, process.id, stack);
    return;
  }
  rows.samples.Append({.time_ns = sample.time_ns + source.epoch_offset_ns,
                       .process = process.id,
                       .tid = sample.tid,
                       .cpu = sample.cpu,
                       .stack = stack,
                       .state = model::ThreadState::kOnCpu,
                       .weight_ns = kernel->sampler.period_ns()});
}

void CpuProfiler::State::Describe(Process& process) {
  if (!describer.has_value()) return;
  describer->Describe(process);
  if (describer->IsWaiting(process)) waiting.insert(process.info.pid);
}

void CpuProfiler::State::WriteDrops() {
  if (kernel.has_value()) drops.Merge(kernel->TakeDrops());
  const model::DropCounts taken = drops.Take();
  for (const model::DropInfo& reason : model::kDropReasons)
    if (const int64_t count = taken.Of(reason.reason); count > 0)
      rows.drops.Append({.time_ns = MonotonicNow() + source.epoch_offset_ns,
                         .source = source.source,
                         .reason = reason.reason,
                         .count = count});
}

}  // namespace gpusonde::agent
