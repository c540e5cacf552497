// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/off_cpu.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "off_cpu.skel.h"
#include "sources/ebpf/bpf_program.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/ebpf/program_counters.h"
#include "sources/ebpf/stack_tables.h"

namespace gpusonde::ebpf {
namespace {

struct OffCpuDeleter {
  void operator()(off_cpu_bpf* skeleton) const { off_cpu_bpf__destroy(skeleton); }
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

}  // namespace

struct OffCpu::State {
  std::unique_ptr<off_cpu_bpf, OffCpuDeleter> skeleton;
  std::unique_ptr<ring_buffer, OffCpuDeleter> ring;
  const Visit* visit = nullptr;
  ProgramCounters counters = ProgramCounters(GPUSONDE_OFF_CPU_COUNTERS);
  ProgramCounters stack_counters = ProgramCounters(GPUSONDE_STACK_COUNTERS);

  // The intervals in progress when it stopped.
  std::vector<OffCpuBegin> unbegun;  // whose stacks were not taken
  std::vector<OffCpuEnd> unended;
  bpf_link* late_stacks = nullptr;

  ~State() { bpf_link__destroy(late_stacks); }
  bpf_program* ChooseResume() const;
  void AttachResume(bpf_program* program);

  void EndAbsence(const gpusonde_off_cpu_absence& absence, uint64_t now_ns);
  void EndAbsences(uint64_t now_ns);

  static int OnRecord(void* context, void* data, size_t size);
};

int OffCpu::State::OnRecord(void* context, void* data, size_t size) {
  const State& state = *static_cast<State*>(context);
  constexpr size_t kHead = offsetof(gpusonde_off_cpu_begin, stack);
  uint32_t kind = 0;
  if (size < sizeof kind) return 0;  // can't happen with our own program, like the other checks below
  std::memcpy(&kind, data, sizeof kind);
  if (kind == GPUSONDE_OFF_CPU_END && size >= sizeof(OffCpuEnd)) {
    (*state.visit)(OffCpuEnd(*static_cast<const OffCpuEnd*>(data)));
    return 0;
  }
  if (kind != GPUSONDE_OFF_CPU_BEGIN || size < kHead + offsetof(gpusonde_stack, words)) return 0;
  const auto* begin = static_cast<const gpusonde_off_cpu_begin*>(data);
  const std::optional<RawStack> stack = RawStack::FromWire(begin->stack, size - kHead);
  if (!stack.has_value()) return 0;
  (*state.visit)(OffCpuBegin{.head = begin->head, .taken_ns = begin->taken_ns, .stack = *stack});
  return 0;
}

// Selects the program that takes stacks when threads are switched in again, depending on what this kernel
// has.
bpf_program* OffCpu::State::ChooseResume() const {
  bpf_program* program = libbpf_find_vmlinux_btf_id("sched_exit_tp", BPF_TRACE_RAW_TP) > 0
                             ? skeleton->progs.resume_by_tracepoint
                             : skeleton->progs.resume_by_probe;
  bpf_program__set_autoload(program, true);
  return program;
}

// On a kernel with neither, long waits are sampled like short ones.
void OffCpu::State::AttachResume(bpf_program* program) {
  if (program == skeleton->progs.resume_by_tracepoint) {
    late_stacks = bpf_program__attach(program);
  } else {
    // GCC appends .isra.0 when it changes how the argument is passed.
    for (const char* function : {"finish_task_switch", "finish_task_switch.isra.0"})
      if (late_stacks == nullptr) late_stacks = bpf_program__attach_kprobe(program, false, function);
  }
  if (late_stacks == nullptr)
    LogWarn("long off-CPU waits are sampled instead of all recorded: {}",
            ErrnoError(errno, "attach to the switch-in of threads").message);
  skeleton->bss->late_stacks = late_stacks != nullptr;
}

// Keeps what is to be reported of an absence that is in progress.
void OffCpu::State::EndAbsence(const gpusonde_off_cpu_absence& absence, uint64_t now_ns) {
  const gpusonde_off_cpu_head& head = absence.head;
  if (head.time_ns == 0) return;
  if (head.sampled == 0) {
    if (now_ns - head.time_ns < GPUSONDE_OFF_CPU_LONG_NS) return;
    unbegun.push_back({.head = head, .taken_ns = now_ns});
  }
  unended.push_back({.kind = GPUSONDE_OFF_CPU_END,
                     .tid = head.tid,
                     .begin_ns = head.time_ns,
                     .woken_ns = absence.woken_ns != 0 ? absence.woken_ns : now_ns,
                     .end_ns = now_ns});
}

void OffCpu::State::EndAbsences(uint64_t now_ns) {
  const int slots = bpf_map__fd(skeleton->maps.thread_slots);
  gpusonde_off_cpu_slot slot{};
  for (uint32_t i = 0; i < bpf_map__max_entries(skeleton->maps.thread_slots); ++i)
    if (bpf_map_lookup_elem(slots, &i, &slot) == 0) EndAbsence(slot.entry, now_ns);
  const int crowded = bpf_map__fd(skeleton->maps.crowded_threads);
  uint32_t tid = 0, next = 0;
  gpusonde_off_cpu_absence absence{};
  for (const uint32_t* at = nullptr; bpf_map_get_next_key(crowded, at, &next) == 0; at = &tid) {
    tid = next;
    if (bpf_map_lookup_elem(crowded, &tid, &absence) == 0) EndAbsence(absence, now_ns);
  }
}

OffCpu::OffCpu(std::unique_ptr<State> state) : state_(std::move(state)) {}
OffCpu::OffCpu(OffCpu&&) noexcept = default;
OffCpu& OffCpu::operator=(OffCpu&&) noexcept = default;
OffCpu::~OffCpu() = default;

Result<OffCpu> OffCpu::Create(const Options& options, const StackTables& tables, const CpuSampler& sampler) {
  SendLibbpfToLog();
  auto state = std::make_unique<State>();
  state->skeleton.reset(off_cpu_bpf__open());
  if (state->skeleton == nullptr) return Fail(Explain(errno, "open the BPF program for off-CPU intervals"));
  state->skeleton->rodata->every_process = options.every_process;
  state->skeleton->rodata->pid_namespace = PidNamespace();
  state->skeleton->rodata->budget = std::max(options.stacks_per_second, 1u);
  bpf_map__set_max_entries(state->skeleton->maps.events, std::bit_ceil(options.ring_bytes));
  TRY(tables.ShareWith(state->skeleton->obj));
  for (const auto& [map, fd] : {std::pair(state->skeleton->maps.targets, sampler.targets_fd()),
                                std::pair(state->skeleton->maps.target_changes, sampler.target_changes_fd())})
    if (const int error = bpf_map__reuse_fd(map, fd); error != 0)
      return Fail(Explain(-error, "share the list of target processes"));
  bpf_program* const resume = state->ChooseResume();
  if (const int error = off_cpu_bpf__load(state->skeleton.get()); error != 0)
    return Fail(Explain(-error, "load the BPF program for off-CPU intervals"));
  if (const int error = off_cpu_bpf__attach(state->skeleton.get()); error != 0)
    return Fail(Explain(-error, "attach to the scheduler"));
  state->AttachResume(resume);
  state->ring.reset(
      ring_buffer__new(bpf_map__fd(state->skeleton->maps.events), State::OnRecord, state.get(), nullptr));
  if (state->ring == nullptr) return Fail(Explain(errno, "map the ring buffer of off-CPU intervals"));
  return OffCpu(std::move(state));
}

Status OffCpu::Drain(const Visit& visit) {
  state_->visit = &visit;
  const int consumed = ring_buffer__consume(state_->ring.get());
  state_->visit = nullptr;
  if (consumed < 0) return Fail(ErrnoError(-consumed, "read the ring buffer of off-CPU intervals"));
  for (const OffCpuBegin& away : std::exchange(state_->unbegun, {})) visit(OffCpuBegin(away));
  for (const OffCpuEnd& away : std::exchange(state_->unended, {})) visit(OffCpuEnd(away));
  return {};
}

model::DropCounts OffCpu::DrainDrops() {
  using enum model::DropReason;
  static constexpr model::DropReason kReasons[GPUSONDE_OFF_CPU_COUNTERS] = {kRingFull, kOffCpuLost};
  model::DropCounts drops;
  state_->counters.Take(bpf_map__fd(state_->skeleton->maps.counters), kReasons, drops);
  state_->stack_counters.Take(bpf_map__fd(state_->skeleton->maps.stack_counters), StackCounterReasons(),
                              drops);
  return drops;
}

void OffCpu::Stop() {
  off_cpu_bpf__detach(state_->skeleton.get());
  bpf_link__destroy(std::exchange(state_->late_stacks, nullptr));
  state_->EndAbsences(static_cast<uint64_t>(MonotonicNow()));
}

int64_t OffCpuWeight(int64_t duration_ns, const gpusonde_off_cpu_head& head) {
  if (duration_ns >= GPUSONDE_OFF_CPU_LONG_NS) return duration_ns;
  if (head.sampled == 0 || duration_ns < int64_t{head.limit_ns}) return 0;
  const double probability = (static_cast<double>(head.chance) + 1) * 0x1p-32;
  return std::llround(static_cast<double>(std::max<int64_t>(duration_ns, GPUSONDE_OFF_CPU_WHOLE_NS)) /
                      probability);
}

}  // namespace gpusonde::ebpf
