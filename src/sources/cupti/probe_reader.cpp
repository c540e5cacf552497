// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/probe_reader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "gpu_events.skel.h"
#include "sources/cupti/detacher.h"
#include "sources/ebpf/bpf_program.h"
#include "sources/ebpf/program_counters.h"
#include "wire/gpu_event.h"

namespace gpusonde::cupti {
namespace {

using model::DropReason;

struct Destroy {
  void operator()(gpu_events_bpf* skeleton) const { gpu_events_bpf__destroy(skeleton); }
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
using Link = std::unique_ptr<bpf_link, Destroy>;
struct Attached {
  std::string path;
  Link link;
};

// Moves what `is_meant` from the links to the detacher.
template <class Meant>
void DetachSome(std::vector<Attached>& links, Meant is_meant, Detacher& detacher) {
  const auto meant = std::ranges::stable_partition(links, std::not_fn(is_meant));
  std::vector<Detacher::Detach> probes;
  for (Attached& attached : meant)
    probes.emplace_back([link = attached.link.release()] { bpf_link__destroy(link); });
  links.erase(meant.begin(), meant.end());
  detacher.Add(std::move(probes));
}
void DetachAll(std::vector<Attached>& links, Detacher& detacher) {
  DetachSome(links, [](const Attached&) { return true; }, detacher);
}

// CAP_PERFMON is not enough for these, tried on Linux 6.18.
Error ProbeError(int error_number, std::string_view what) {
  Error error = ErrnoError(error_number, what);
  if (error.code == ErrorCode::kPermissionDenied) error.message += "; run as root, or give CAP_SYS_ADMIN";
  return error;
}

}  // namespace

struct ProbeReader::State {
  std::unique_ptr<gpu_events_bpf, Destroy> skeleton;
  std::unique_ptr<ring_buffer, Destroy> ring;
  std::unordered_map<int32_t, std::vector<Attached>> links;  // by pid
  std::vector<Attached> snapshot_links;
  const std::function<void(const Decoder::Origin&, std::span<const std::byte>)>* visit = nullptr;
  ebpf::ProgramCounters counters{GPUSONDE_GPU_COUNTERS};
  ebpf::ProgramCounters stack_counters{GPUSONDE_STACK_COUNTERS};
  Detacher detacher;  // last: what it detaches belongs to the skeleton

  static int OnMessage(void* context, void* data, size_t size);
  static Result<Link> AttachTo(const bpf_program* program, int32_t pid, const std::string& path,
                               const std::string& probe);
};

Result<Link> ProbeReader::State::AttachTo(const bpf_program* program, int32_t pid, const std::string& path,
                                          const std::string& probe) {
  Link link(bpf_program__attach_usdt(program, pid, path.c_str(), "gpusonde", probe.c_str(), nullptr));
  if (link == nullptr)
    return Fail(ProbeError(errno, fmt::format("attach to the probe {} of {}", probe, path)));
  return link;
}

// The lengths come from our own BPF program; they are checked all the same.
int ProbeReader::State::OnMessage(void* context, void* data, size_t size) {
  State& state = *static_cast<State*>(context);
  gpusonde_gpu_message message;
  if (size < sizeof message) return 0;
  std::memcpy(&message, data, sizeof message);
  const std::span<const std::byte> rest(static_cast<const std::byte*>(data) + sizeof message,
                                        size - sizeof message);
  if (message.batch_bytes > rest.size()) return 0;
  Decoder::Origin origin{.pid = static_cast<int32_t>(message.pid), .tid = static_cast<int32_t>(message.tid)};
  if (message.stack_bytes >= offsetof(gpusonde_stack, words)) {
    if (message.batch_bytes > GPUSONDE_GPU_LAUNCH_BYTES ||
        rest.size() < GPUSONDE_GPU_LAUNCH_BYTES + size_t{message.stack_bytes})
      return 0;
    // Records in the ring are aligned to 8 bytes.
    const auto* stack = reinterpret_cast<const gpusonde_stack*>(rest.data() + GPUSONDE_GPU_LAUNCH_BYTES);
    if (const std::optional<ebpf::RawStack> taken = ebpf::RawStack::FromWire(*stack, message.stack_bytes)) {
      origin.stack = *taken;
      origin.stack_taken = !taken->user().empty();
    }
  }
  (*state.visit)(origin, rest.first(message.batch_bytes));
  return 0;
}

ProbeReader::ProbeReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProbeReader::ProbeReader(ProbeReader&&) noexcept = default;
ProbeReader& ProbeReader::operator=(ProbeReader&&) noexcept = default;
ProbeReader::~ProbeReader() = default;

Result<ProbeReader> ProbeReader::Create(uint32_t ring_bytes, uint32_t bytes_per_second,
                                        const ebpf::StackTables& tables) {
  ebpf::SendLibbpfToLog();
  auto state = std::make_unique<State>();
  state->skeleton.reset(gpu_events_bpf__open());
  if (state->skeleton == nullptr) return Fail(ebpf::Explain(errno, "open the BPF program for GPU events"));
  state->skeleton->rodata->bytes_per_second = bytes_per_second;
  state->skeleton->rodata->pid_namespace = ebpf::PidNamespace();
  bpf_map__set_max_entries(state->skeleton->maps.messages, std::bit_ceil(ring_bytes));
  TRY(tables.ShareWith(state->skeleton->obj));
  if (const int error = gpu_events_bpf__load(state->skeleton.get()); error != 0)
    return Fail(ebpf::Explain(-error, "load the BPF program for GPU events"));
  state->ring.reset(
      ring_buffer__new(bpf_map__fd(state->skeleton->maps.messages), State::OnMessage, state.get(), nullptr));
  if (state->ring == nullptr) return Fail(ebpf::Explain(errno, "map the ring buffer of GPU events"));
  return ProbeReader(std::move(state));
}

Status ProbeReader::Attach(int32_t pid, const std::string& path, Probes wanted) {
  struct Probe {
    const char* name;
    bpf_program* program;
    Probes group;
  };
  // `records` before `state`, which wakes the library, so that no records of the session are missed.
  const Probe probes[] = {{"records", state_->skeleton->progs.on_batch, Probes::kReports},
                          {"state", state_->skeleton->progs.on_batch, Probes::kReports},
                          {"launch", state_->skeleton->progs.on_launch, Probes::kLaunches},
                          {"ready", state_->skeleton->progs.on_batch, Probes::kLaunches},  // after `launch`
                          {"snapshot", state_->skeleton->progs.on_batch, Probes::kSnapshots}};
  const Detacher::Pause pause(state_->detacher);
  std::vector<Link> links;
  for (const Probe& probe : probes) {
    if (probe.group != wanted) continue;
    ASSIGN_OR_RETURN(Link link, State::AttachTo(probe.program, pid, path, probe.name));
    links.push_back(std::move(link));
  }
  std::vector<Attached>& kept = wanted == Probes::kSnapshots ? state_->snapshot_links : state_->links[pid];
  for (Link& link : links) kept.push_back({path, std::move(link)});
  return {};
}

Status ProbeReader::AttachBudget(int32_t pid, const std::string& path, double budget) {
  static constexpr uint32_t kBudgets[GPUSONDE_GPU_BUDGET_COUNT] = GPUSONDE_GPU_BUDGETS;
  size_t level = 0;
  while (level + 1 < std::size(kBudgets) && kBudgets[level + 1] <= std::llround(budget * GPUSONDE_GPU_PPM))
    ++level;
  const Detacher::Pause pause(state_->detacher);
  ASSIGN_OR_RETURN(Link link, State::AttachTo(state_->skeleton->progs.on_batch, pid, path,
                                              fmt::format("budget{}", level)));
  state_->links[pid].push_back({path, std::move(link)});
  return {};
}

void ProbeReader::EndSnapshots() { DetachAll(state_->snapshot_links, state_->detacher); }

void ProbeReader::Detach(int32_t pid) {
  if (auto links = state_->links.extract(pid); !links.empty()) DetachAll(links.mapped(), state_->detacher);
}

void ProbeReader::Detach(int32_t pid, const std::string& path) {
  const auto found = state_->links.find(pid);
  if (found == state_->links.end()) return;
  DetachSome(
      found->second, [&path](const Attached& attached) { return attached.path == path; }, state_->detacher);
  if (found->second.empty()) state_->links.erase(found);
}

void ProbeReader::DetachFile(const std::string& path) {
  const auto is_of_file = [&path](const Attached& attached) { return attached.path == path; };
  for (auto& [pid, links] : state_->links) DetachSome(links, is_of_file, state_->detacher);
  std::erase_if(state_->links, [](const auto& entry) { return entry.second.empty(); });
  DetachSome(state_->snapshot_links, is_of_file, state_->detacher);
}

bool ProbeReader::AttachedTo(int32_t pid) const { return state_->links.contains(pid); }

void ProbeReader::Drain(
    const std::function<void(const Decoder::Origin&, std::span<const std::byte> batch)>& visit) {
  state_->visit = &visit;
  (void)ring_buffer__consume(state_->ring.get());
  state_->visit = nullptr;
}

model::DropCounts ProbeReader::DrainDrops() {
  // The Decoder counts a message that the BPF program dropped as a gap in the sequence, so that it isn't
  // counted here.
  model::DropCounts drops;
  state_->counters.TakeOne(bpf_map__fd(state_->skeleton->maps.counters), GPUSONDE_GPU_UNREADABLE,
                           DropReason::kGpuMalformed, drops);
  state_->stack_counters.Take(bpf_map__fd(state_->skeleton->maps.stack_counters), ebpf::StackCounterReasons(),
                              drops);
  return drops;
}

int ProbeReader::fd() const { return ring_buffer__epoll_fd(state_->ring.get()); }

void ProbeReader::WakeAfter(int64_t time_ns) {
  __atomic_store_n(&state_->skeleton->bss->wake_after_ns, static_cast<uint64_t>(time_ns), __ATOMIC_RELAXED);
}

void ProbeReader::Stop() {
  // All probes end at once; they are detached one by one.
  __atomic_store_n(&state_->skeleton->bss->stopped, true, __ATOMIC_RELAXED);
  for (auto& [pid, links] : state_->links) DetachAll(links, state_->detacher);
  state_->links.clear();
  EndSnapshots();
}

}  // namespace gpusonde::cupti
