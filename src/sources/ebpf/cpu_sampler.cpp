// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/cpu_sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "cpu_sampler.skel.h"
#include "sources/ebpf/bpf_program.h"
#include "sources/ebpf/program_counters.h"
#include "sources/ebpf/stack_tables.h"
#include "wire/cpu_sample.h"

namespace gpusonde::ebpf {
namespace {

constexpr double kMaxFrequencyHz = 10'000;

// Nothing for a CPU that is possible, not online.
Result<std::optional<Fd>> OpenCpuClock(int cpu, int64_t period_ns) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = static_cast<uint64_t>(period_ns);
  attributes.exclude_idle = 1;
  const long fd = ::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) return Fd(static_cast<int>(fd));
  const int error = errno;
  if (error == ENODEV) return std::nullopt;
  return Fail(Explain(error, fmt::format("perf_event_open(cpu-clock, CPU {})", cpu)));
}

struct SamplerDeleter {
  void operator()(cpu_sampler_bpf* skeleton) const { cpu_sampler_bpf__destroy(skeleton); }
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

}  // namespace

struct CpuSampler::State {
  int64_t period_ns = 0;
  std::unique_ptr<cpu_sampler_bpf, SamplerDeleter> skeleton;
  std::unique_ptr<ring_buffer, SamplerDeleter> ring;
  std::vector<std::unique_ptr<bpf_link, SamplerDeleter>> clocks;  // a link owns its perf event
  const Visit* visit = nullptr;
  ProgramCounters counters = ProgramCounters(GPUSONDE_CPU_COUNTERS);
  ProgramCounters stack_counters = ProgramCounters(GPUSONDE_STACK_COUNTERS);

  static int OnRecord(void* context, void* data, size_t size);
};

int CpuSampler::State::OnRecord(void* context, void* data, size_t size) {
  State& state = *static_cast<State*>(context);
  const auto* sample = static_cast<const gpusonde_cpu_sample*>(data);
  constexpr size_t kHeader = offsetof(gpusonde_cpu_sample, stack);
  if (size < kHeader + offsetof(gpusonde_stack, words)) return 0;  // can't happen with our own program
  const std::optional<RawStack> stack = RawStack::FromWire(sample->stack, size - kHeader);
  if (!stack.has_value()) return 0;  // nor can this
  (*state.visit)(RawSample{.time_ns = static_cast<int64_t>(sample->time_ns),
                           .pid = static_cast<int32_t>(sample->pid),
                           .tid = static_cast<int32_t>(sample->tid),
                           .cpu = static_cast<int32_t>(sample->cpu),
                           .stack = *stack});
  return 0;
}

CpuSampler::CpuSampler(std::unique_ptr<State> state) : state_(std::move(state)) {}
CpuSampler::CpuSampler(CpuSampler&&) noexcept = default;
CpuSampler& CpuSampler::operator=(CpuSampler&&) noexcept = default;
CpuSampler::~CpuSampler() = default;

Result<CpuSampler> CpuSampler::Create(const Options& options, const StackTables& tables) {
  if (!(options.frequency_hz > 0 && options.frequency_hz <= kMaxFrequencyHz))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("sampling frequency {} Hz: must be above 0 and at most {}", options.frequency_hz,
                            kMaxFrequencyHz));
  SendLibbpfToLog();

  auto state = std::make_unique<State>();
  state->period_ns = std::llround(static_cast<double>(kNanosPerSecond) / options.frequency_hz);
  state->skeleton.reset(cpu_sampler_bpf__open());
  if (state->skeleton == nullptr) return Fail(Explain(errno, "open the BPF program for CPU samples"));
  state->skeleton->rodata->every_process = options.every_process;
  state->skeleton->rodata->pid_namespace = PidNamespace();
  bpf_map__set_max_entries(state->skeleton->maps.samples, std::bit_ceil(options.ring_bytes));
  TRY(tables.ShareWith(state->skeleton->obj));
  if (const int error = cpu_sampler_bpf__load(state->skeleton.get()); error != 0)
    return Fail(Explain(-error, "load the BPF program for CPU samples"));
  if (const int error = cpu_sampler_bpf__attach(state->skeleton.get()); error != 0)
    return Fail(Explain(-error, "attach to process forks, execs and exits"));

  state->ring.reset(
      ring_buffer__new(bpf_map__fd(state->skeleton->maps.samples), State::OnRecord, state.get(), nullptr));
  if (state->ring == nullptr) return Fail(Explain(errno, "map the ring buffer of CPU samples"));

  const int cpus = libbpf_num_possible_cpus();
  for (int cpu = 0; cpu < cpus; ++cpu) {
    ASSIGN_OR_RETURN(std::optional<Fd> clock, OpenCpuClock(cpu, state->period_ns));
    if (!clock.has_value()) continue;
    bpf_link* link = bpf_program__attach_perf_event(state->skeleton->progs.take_sample, clock->get());
    if (link == nullptr) return Fail(Explain(errno, fmt::format("attach to the clock of CPU {}", cpu)));
    clock->release();
    state->clocks.emplace_back(link);
  }
  return CpuSampler(std::move(state));
}

Status CpuSampler::Follow(int32_t pid) { return AddTarget(targets_fd(), target_changes_fd(), pid); }

Status CpuSampler::Drain(const Visit& visit) {
  state_->visit = &visit;
  const int consumed = ring_buffer__consume(state_->ring.get());
  state_->visit = nullptr;
  if (consumed < 0) return Fail(ErrnoError(-consumed, "read the ring buffer of CPU samples"));
  return {};
}

int CpuSampler::targets_fd() const { return bpf_map__fd(state_->skeleton->maps.targets); }

int CpuSampler::target_changes_fd() const { return bpf_map__fd(state_->skeleton->maps.target_changes); }

std::vector<int> CpuSampler::wake_fds() const { return {ring_buffer__epoll_fd(state_->ring.get())}; }

int64_t CpuSampler::period_ns() const { return state_->period_ns; }

model::DropCounts CpuSampler::DrainDrops() {
  using model::DropReason;
  static constexpr DropReason kReasons[GPUSONDE_CPU_COUNTERS] = {DropReason::kRingFull,
                                                                 DropReason::kTooManyProcesses};
  model::DropCounts drops;
  state_->counters.Take(bpf_map__fd(state_->skeleton->maps.counters), kReasons, drops);
  state_->stack_counters.Take(bpf_map__fd(state_->skeleton->maps.stack_counters), StackCounterReasons(),
                              drops);
  return drops;
}

void CpuSampler::Stop() { state_->clocks.clear(); }

}  // namespace gpusonde::ebpf
