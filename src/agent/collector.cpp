// SPDX-License-Identifier: Apache-2.0
#include "agent/collector.h"

#include <poll.h>

#include <algorithm>
#include <future>
#include <limits>
#include <optional>
#include <ranges>
#include <unordered_set>
#include <utility>
#include <variant>

#include "agent/gpu_programs.h"
#include "agent/gpu_rows.h"
#include "agent/kernel_side.h"
#include "agent/merger.h"
#include "agent/names.h"
#include "agent/off_cpu_rows.h"
#include "agent/proc_events.h"
#include "agent/process_table.h"
#include "agent/rows.h"
#include "agent/sample_rows.h"
#include "agent/stack_describer.h"
#include "base/log.h"
#include "base/version.h"
#include "sources/cupti/inject_library.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

constexpr int kUrgentMs = 10;
// While files are being read: stacks are incomplete until the kernel has their unwind tables.
constexpr int kReadingMs = 100;
// How long an injected program takes to flush its batches once it has begun.
constexpr int64_t kFlushNs = 10 * kNanosPerMilli;

// Reading /proc for 10,000 threads takes 0.1 s, and losses come in bursts.
constexpr int64_t kResyncIntervalNs = kNanosPerSecond;

// Known program files, 500 bytes each, before those that no process maps any more are forgotten. A machine
// that compiles and tests runs 100,000 a day.
constexpr size_t kMaxBinaries = 10'000;

Result<cupti::GpuEvents> OpenGpuEvents(const ebpf::StackTables* tables, const Collector::Options& options) {
  const std::optional<std::string> library = cupti::FindInjectLibrary();
  if (!library.has_value())
    return Fail(ErrorCode::kNotFound, "libgpusonde-inject.so is not in the folder of this program");
  return cupti::GpuEvents::Create(
      {.library_path = *library, .every_process = options.every_process, .budget = options.overhead}, tables);
}

// If the library is missing or the kernel refuses, profiles have no GPU work.
std::optional<cupti::GpuEvents> OrWithout(Result<cupti::GpuEvents> events) {
  if (events.has_value()) return std::move(*events);
  LogWarn("GPU work is not profiled: {}", events.error().message);
  return std::nullopt;
}

model::Source NewSource(const Collector::Options& options) {
  const proc::HostInfo host = proc::ReadHost();
  model::Source source{
      .kind = options.every_process ? model::SourceKind::kAgent : model::SourceKind::kRecord,
      .host = options.host.empty() ? host.name : options.host,
      .boot_id = host.boot_id,
      .kernel = host.kernel_release,
      .version = std::string(kVersion),
      .cpus = host.cpus,
      .sampling_hz = options.with_kernel ? std::optional(options.frequency_hz) : std::nullopt,
      .command = options.command.empty() ? std::nullopt : std::optional(options.command),
      .epoch_offset_ns = options.epoch_offset_ns};
  source.started_ns = MonotonicNow() + source.epoch_offset_ns;
  source.source = IdHasher("source").Add(host.boot_id).Add(static_cast<uint64_t>(source.started_ns)).Finish();
  return source;
}

}  // namespace

struct Collector::State {
  State(std::optional<KernelSide> kernel_in, StackInterner::KernelSymbolsLater symbols,
        std::optional<cupti::GpuEvents> gpu_in, model::Source source_in, const Options& options)
      : every_process(options.every_process),
        kernel(std::move(kernel_in)),
        source(std::move(source_in)),
        names({.kernel = std::move(symbols), .lines = options.lines, .files = options.files}, rows, drops),
        processes({.host = proc::ReadHost(),
                   .source = source.source,
                   .epoch_offset_ns = source.epoch_offset_ns,
                   .every_process = every_process},
                  names.binaries(), rows),
        gpu_rows({.source = source.source,
                  .host = source.host,
                  .epoch_offset_ns = source.epoch_offset_ns,
                  .pack_kernels = every_process,
                  .devices = options.devices},
                 rows, drops),
        off_cpu_rows(source.epoch_offset_ns, rows),
        gpu(std::move(gpu_in), kernel.has_value(), processes, gpu_rows, drops),
        sample_rows(source.epoch_offset_ns, kernel.has_value() ? kernel->sampler.period_ns() : 0,
                    names.stacks(),
                    {.rows = rows, .gpu_rows = gpu_rows, .off_cpu_rows = off_cpu_rows, .drops = drops}) {
    if (kernel.has_value()) {
      describer.emplace(kernel->tables, names.files(), processes);
      all_sources = kernel->StackSources();
    }
    if (gpu.source() != nullptr) all_sources.push_back(gpu.source());
    all_sources.push_back(&process_events());
  }

  // Forks, execs and exits.
  sources::Source& process_events() {
    if (kernel.has_value()) return kernel->sideband;
    return proc_events;
  }

  bool every_process;
  // Programs load most of their code when they start, and their stacks break off until the kernel has its
  // unwind tables.
  int64_t urgent_until_ns = MonotonicNow() + 3 * kNanosPerSecond;
  std::optional<KernelSide> kernel;
  ProcEvents proc_events;  // used without the kernel side
  model::Source source;
  int64_t end_ns = std::numeric_limits<int64_t>::max();  // as given to Begin
  Rows rows;
  model::DropCounts drops;
  Names names;
  ProcessTable processes;
  std::optional<StackDescriber> describer;
  GpuRows gpu_rows;
  OffCpuRows off_cpu_rows;
  GpuPrograms gpu;
  SampleRows sample_rows;
  std::vector<sources::Source*> all_sources;  // in the order in which they are drained
  Merger merger;

  std::unordered_set<Process*> sampled;  // in this round
  std::unordered_set<int32_t> waiting;   // processes described without files that are still being read
  std::vector<int32_t> ended_threads;    // in this round

  int64_t events_lost = 0;  // as of the last resync
  int64_t resynced_ns = 0;  // CLOCK_MONOTONIC
  size_t max_binaries = kMaxBinaries;

  Status gathered;  // result of the last Gather during a wait

  Status Gather(int64_t until_ns);
  std::vector<model::Batch> DrainRows();
  void Ingest(sources::Event&& event);
  void ApplyForks(int32_t pid);
  void Visit(const sources::Event& event);
  void Apply(const perf::SidebandEvent& event);
  template <class Captured>
  void Resolve(const Captured& captured, int32_t pid, int64_t time_ns, const ebpf::RawStack& stack);
  void ResyncAfterLoss();
  void ForgetBinaries();
  void DescribeSampled();
  void Describe(Process& process);
  void WriteDrops();
};

Collector::Collector(std::unique_ptr<State> state) : state_(std::move(state)) {}
Collector::Collector(Collector&&) noexcept = default;
Collector& Collector::operator=(Collector&&) noexcept = default;
Collector::~Collector() = default;

Result<Collector> Collector::Create(const Options& options) {
  model::Source source = NewSource(options);
  std::optional<KernelSide> kernel;
  std::optional<Result<cupti::GpuEvents>> gpu;
  StackInterner::KernelSymbolsLater symbols;
  if (options.with_kernel) {
    // Load in parallel, on threads of their own, while the kernel verifies our other programs; each takes
    // about 0.03 s.
    symbols = std::async(std::launch::async, symbols::KernelSymbols::Load);
    ASSIGN_OR_RETURN(kernel, KernelSide::Create(options, [&](const ebpf::StackTables& tables) {
                       gpu = OpenGpuEvents(&tables, options);
                     }));
  } else {
    gpu = OpenGpuEvents(nullptr, options);
  }
  auto state = std::make_unique<State>(std::move(kernel), std::move(symbols), OrWithout(std::move(*gpu)),
                                       std::move(source), options);
  if (options.every_process) {
    state->rows.sources.Append(state->source);
    for (const int32_t pid : proc::ListProcesses()) state->gpu.AttachMapped(pid);
  }
  return Collector(std::move(state));
}

Status Collector::Follow(int32_t pid) {
  TRY(state_->processes.Follow(pid));
  state_->gpu.AttachMapped(pid);
  if (state_->kernel.has_value()) return state_->kernel->sampler.Follow(pid);
  state_->proc_events.Follow(pid);
  return {};
}

void Collector::AwaitUnwindTables(std::span<const int32_t> pids, int timeout_ms) {
  const int64_t until_ns = MonotonicNow() + timeout_ms * kNanosPerMilli;
  for (const int32_t pid : pids)
    if (state_->processes.Follow(pid).has_value()) state_->waiting.insert(pid);
  while (true) {
    state_->DescribeSampled();
    const auto left_ms = static_cast<int>((until_ns - MonotonicNow()) / kNanosPerMilli);
    if (state_->waiting.empty() || left_ms <= 0) return;
    state_->names.files().Wait(std::min(left_ms, kReadingMs));
  }
}

void Collector::Begin(int64_t begin_ns, int64_t end_ns) {
  state_->end_ns = end_ns;
  state_->sample_rows.set_limits(begin_ns, end_ns);
  state_->off_cpu_rows.set_limits(begin_ns, end_ns);
  state_->source.started_ns = begin_ns + state_->source.epoch_offset_ns;
  state_->rows.sources.Append(state_->source);
}

Result<GpuChannel> Collector::MakeGpuChannel() { return state_->gpu.MakeChannel(); }

Status Collector::AttachGpuProgram(int32_t pid) { return state_->gpu.AttachBeforeExec(pid); }

Result<std::vector<model::Batch>> Collector::Poll() {
  TRY(std::exchange(state_->gathered, {}));
  TRY(state_->Gather(MonotonicNow()));
  return state_->DrainRows();
}

Result<std::vector<model::Batch>> Collector::Finish(const std::function<bool()>& may_wait) {
  for (sources::Source* source : state_->all_sources) source->Stop();
  state_->source.ended_ns = std::min(MonotonicNow(), state_->end_ns) + state_->source.epoch_offset_ns;
  state_->rows.sources.Append(state_->source);
  TRY(state_->Gather(std::numeric_limits<int64_t>::max()));
  // Exit events may be among the lost ones.
  if (state_->kernel.has_value() && state_->kernel->sideband.lost() > 0)
    state_->processes.Resync(MonotonicNow());
  state_->gpu.Finish(state_->gpu.ended());
  state_->gpu_rows.FinishAll();
  state_->names.Await(may_wait);
  return state_->DrainRows();
}

void Collector::Rewrite() {
  state_->rows.sources.Append(state_->source);
  state_->processes.Rewrite();
  state_->names.stacks().Rewrite();
  state_->off_cpu_rows.Rewrite(
      state_->names.stacks().UnknownStack(),
      [this](int32_t pid, const Id128& process) { state_->processes.WriteAgain(pid, process); });
  state_->gpu_rows.Rewrite();
}

void Collector::CountLostRows(model::DropReason reason, int64_t rows) { state_->drops.Add(reason, rows); }

Id128 Collector::source() const { return state_->source.source; }

std::vector<int32_t> Collector::living() const { return state_->processes.living(); }

void Collector::Wait(int min_ms, int max_ms, int interrupt_fd) {
  std::vector<pollfd> fds{{.fd = interrupt_fd, .events = POLLIN, .revents = 0}};
  for (const sources::Source* source : state_->all_sources)
    for (const int fd : source->wake_fds()) fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  const int64_t begin_ns = MonotonicNow();
  const int64_t min_ns = begin_ns + min_ms * kNanosPerMilli;
  int64_t until_ns = begin_ns + max_ms * kNanosPerMilli;
  state_->gpu.WakeAfter(min_ns);
  (void)state_->gpu.DrainArrived();
  bool work_arrived = false;
  for (int left_ms = max_ms; left_ms > 0 && state_->gathered.has_value();
       left_ms = static_cast<int>((until_ns - MonotonicNow()) / kNanosPerMilli)) {
    const bool urgent =
        !state_->every_process && state_->kernel.has_value() && MonotonicNow() < state_->urgent_until_ns;
    const int longest_ms = state_->names.files().idle() ? left_ms : kReadingMs;
    const int step_ms = std::min(left_ms, urgent ? kUrgentMs : longest_ms);
    const int ready = ::poll(fds.data(), fds.size(), step_ms);
    if (ready < 0 || (ready == 0 && step_ms == left_ms) || fds.front().revents != 0) return;
    state_->gathered = state_->Gather(MonotonicNow());
    work_arrived |= state_->gpu.DrainArrived();
    if (work_arrived) until_ns = std::min(until_ns, std::max(min_ns, MonotonicNow() + kFlushNs));
  }
}

// All events stamped before `until_ns` are in the sources' buffers when these are read; later events wait for
// the next round.
Status Collector::State::Gather(int64_t until_ns) {
  const size_t ended_before = gpu.ended();
  gpu.BeginRound();
  for (sources::Source* each : all_sources)
    TRY(each->Drain([this](sources::Event&& event) { Ingest(std::move(event)); }));
  merger.Drain(until_ns, [this](sources::Event&& event) { Visit(event); });
  ResyncAfterLoss();
  for (const int32_t tid : std::exchange(ended_threads, {})) off_cpu_rows.Forget(tid);
  // Those that ended before this drain, which thus returned all that they sent.
  gpu.Finish(ended_before);
  DescribeSampled();
  return {};
}

// GPU work that needs no stack becomes rows at once; all else waits for its place in time.
void Collector::State::Ingest(sources::Event&& event) {
  const auto* work = std::get_if<cupti::Event>(&event);
  if (work != nullptr && !work->stack_taken && !processes.Find(work->pid).has_value()) ApplyForks(work->pid);
  if (work == nullptr || !gpu.Ingest(*work)) merger.Ingest(std::move(event));
}

// A process whose GPU work comes before the event of its fork is visited may have ended already: without that
// event its start, its parent and its name would never be known. When the event is visited it changes
// nothing.
void Collector::State::ApplyForks(int32_t pid) {
  // An error comes again when it is that source's turn.
  (void)process_events().Drain([this](sources::Event&& event) { merger.Ingest(std::move(event)); });
  constexpr size_t kMaxForks = 16;
  std::vector<const perf::SidebandEvent*> forks;  // of the process and its unknown ancestors
  while (forks.size() < kMaxForks && !processes.Find(pid).has_value()) {
    const perf::SidebandEvent* fork = merger.ForkOf(pid);
    if (fork == nullptr) break;
    forks.push_back(fork);
    pid = std::get<perf::ForkEvent>(fork->what).parent_pid;
  }
  for (const perf::SidebandEvent* const fork : std::views::reverse(forks)) processes.Apply(*fork);
}

void Collector::State::Visit(const sources::Event& event) {
  if (const auto* sideband = std::get_if<perf::SidebandEvent>(&event); sideband != nullptr) {
    Apply(*sideband);
  } else if (const auto* end = std::get_if<ebpf::OffCpuEnd>(&event); end != nullptr) {
    off_cpu_rows.End(*end);
  } else if (const auto* sample = std::get_if<ebpf::RawSample>(&event); sample != nullptr) {
    if (!sample_rows.IsOutside(*sample)) Resolve(*sample, sample->pid, sample->time_ns, sample->stack);
  } else if (const auto* begin = std::get_if<ebpf::OffCpuBegin>(&event); begin != nullptr) {
    Resolve(*begin, static_cast<int32_t>(begin->head.pid), static_cast<int64_t>(begin->taken_ns),
            begin->stack);
  } else if (const auto* work = std::get_if<cupti::Event>(&event); work != nullptr) {
    Resolve(*work, work->pid, work->stack_ns().value_or(0), work->stack);
  }
}

void Collector::State::Apply(const perf::SidebandEvent& event) {
  const auto* exit = std::get_if<perf::ExitEvent>(&event.what);
  if (exit != nullptr && processes.Outlives(*exit)) return;
  processes.Apply(event);
  if (describer.has_value()) describer->Follow(event);
  if (exit != nullptr) ended_threads.push_back(exit->tid);
  const auto* map = std::get_if<perf::MapEvent>(&event.what);
  // A program that the user named is described before its first sample. When profiling the whole machine it
  // isn't: most processes are never sampled.
  if (map != nullptr && !every_process && processes.Runs(map->pid))
    sampled.insert(&processes.FindSampled(map->pid, event.time_ns));
  gpu.Apply(event);
}

// Turns what was captured with a stack into rows.
template <class Captured>
void Collector::State::Resolve(const Captured& captured, int32_t pid, int64_t time_ns,
                               const ebpf::RawStack& stack) {
  Process& process = processes.FindSampled(pid, time_ns);
  // Describe the process before reading symbols, which takes longer: its stacks break off until then. Not if
  // a later exec replaces the process.
  if (!merger.IsReplacedAfter(pid, time_ns)) Describe(process);
  sampled.insert(&process);
  if (stack.counts().python_end == GPUSONDE_PYTHON_UNKNOWN) processes.RefreshPython(process);
  sample_rows.Ingest(captured, process);
}

// After events were lost, threads and mappings are missing and ended processes seem to run.
void Collector::State::ResyncAfterLoss() {
  const int64_t now_ns = MonotonicNow();
  if (!kernel.has_value() || kernel->sideband.lost() == events_lost ||
      now_ns - resynced_ns < kResyncIntervalNs)
    return;
  events_lost = kernel->sideband.lost();
  resynced_ns = now_ns;
  for (const int32_t pid : processes.Resync(now_ns)) {
    describer->Forget(pid);
    gpu.End(pid);
  }
  off_cpu_rows.ForgetEnded([this](int32_t pid, int32_t tid) { return processes.HasThread(pid, tid); });
}

// Describes what was sampled again, with its current mappings: files mapped since may be in the next stacks.
void Collector::State::DescribeSampled() {
  const auto add = [this](int32_t pid) {
    if (processes.Runs(pid)) sampled.insert(&processes.FindSampled(pid, MonotonicNow()));
  };
  std::ranges::for_each(gpu.beginning(), add);
  names.files().Exchange();
  std::ranges::for_each(std::exchange(waiting, {}), add);
  for (Process* process : sampled) Describe(*process);
  sampled.clear();
  gpu.EnableStacks();
}

void Collector::State::Describe(Process& process) {
  if (!describer.has_value()) return;
  describer->Describe(process);
  if (describer->IsWaiting(process)) waiting.insert(process.info.pid);
}

std::vector<model::Batch> Collector::State::DrainRows() {
  names.WriteArrived();
  gpu_rows.Flush();
  processes.WriteChanges();
  ForgetBinaries();
  WriteDrops();
  return rows.Take();
}

// Only once there are twice as many as were used last: it looks at all mappings.
void Collector::State::ForgetBinaries() {
  if (names.binaries().size() <= max_binaries) return;
  std::unordered_set<const symbols::BinaryTable::Binary*> used;
  processes.AddMapped(used);
  names.stacks().AddAwaited(used);
  names.binaries().ForgetExcept(used);
  processes.ForgetBinaries();
  max_binaries = std::max(kMaxBinaries, 2 * names.binaries().size());
}

void Collector::State::WriteDrops() {
  for (sources::Source* each : all_sources) drops.Merge(each->DrainDrops());
  model::AppendDrops(drops.Take(), MonotonicNow() + source.epoch_offset_ns, source.source, rows.drops);
}

}  // namespace gpusonde::agent
