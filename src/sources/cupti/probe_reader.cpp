// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/probe_reader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "gpu_events.skel.h"
#include "sources/ebpf/stack_tables.h"
#include "sources/refusal.h"
#include "wire/gpu_event.h"

namespace gpusonde::cupti {
namespace {

using model::DropReason;

int LogLibbpf(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG || !LogEnabled(LogLevel::kDebug)) return 0;
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  LogDebug("libbpf: {}", std::string_view(line, std::strcspn(line, "\n")));
  return 0;
}

struct Destroy {
  void operator()(gpu_events_bpf* skeleton) const { gpu_events_bpf__destroy(skeleton); }
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
using Link = std::unique_ptr<bpf_link, Destroy>;

}  // namespace

struct ProbeReader::State {
  std::unique_ptr<gpu_events_bpf, Destroy> skeleton;
  std::unique_ptr<ring_buffer, Destroy> ring;
  std::unordered_map<int32_t, std::vector<Link>> links;  // by pid
  const std::function<void(const Decoder::Origin&, std::span<const std::byte>)>* visit = nullptr;
  std::map<std::pair<bpf_map*, uint32_t>, uint64_t> counters_seen;

  static int OnMessage(void* context, void* data, size_t size);
};

// Lengths are our own kernel program's; checked all the same, it costs nothing.
int ProbeReader::State::OnMessage(void* context, void* data, size_t size) {
  State& state = *static_cast<State*>(context);
  gpusonde_gpu_message message;
  if (size < sizeof message) return 0;
  std::memcpy(&message, data, sizeof message);
  const std::span<const std::byte> rest(static_cast<const std::byte*>(data) + sizeof message,
                                        size - sizeof message);
  if (message.batch_bytes > rest.size()) return 0;
  Decoder::Origin origin{.pid = static_cast<int32_t>(message.pid),
                         .tid = static_cast<int32_t>(message.tid),
                         .stack = std::nullopt};
  if (message.stack_bytes != 0) {
    constexpr size_t kStackAt = GPUSONDE_GPU_LAUNCH_BYTES;
    if (message.batch_bytes > kStackAt || rest.size() < kStackAt + offsetof(gpusonde_stack, words)) return 0;
    // The ring's records lie on 8 bytes.
    origin.stack = ebpf::RawStack::FromWire(*reinterpret_cast<const gpusonde_stack*>(rest.data() + kStackAt),
                                            rest.size() - kStackAt);
  }
  (*state.visit)(origin, rest.first(message.batch_bytes));
  return 0;
}

ProbeReader::ProbeReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProbeReader::ProbeReader(ProbeReader&&) noexcept = default;
ProbeReader& ProbeReader::operator=(ProbeReader&&) noexcept = default;
ProbeReader::~ProbeReader() = default;

Result<ProbeReader> ProbeReader::Create(const ebpf::StackTables& tables, uint32_t ring_bytes,
                                        uint32_t bytes_per_second) {
  libbpf_set_print(LogLibbpf);
  auto state = std::make_unique<State>();
  state->skeleton.reset(gpu_events_bpf__open());
  if (state->skeleton == nullptr) return Fail(sources::KernelError(errno, "open the GPU events program"));
  state->skeleton->rodata->bytes_per_second = bytes_per_second;
  bpf_map__set_max_entries(state->skeleton->maps.messages, std::bit_ceil(ring_bytes));
  TRY(tables.ShareWith(state->skeleton->obj));
  if (const int error = gpu_events_bpf__load(state->skeleton.get()); error != 0)
    return Fail(sources::KernelError(-error, "load the GPU events program into the kernel"));
  state->ring.reset(
      ring_buffer__new(bpf_map__fd(state->skeleton->maps.messages), State::OnMessage, state.get(), nullptr));
  if (state->ring == nullptr) return Fail(sources::KernelError(errno, "map the ring of GPU events"));
  return ProbeReader(std::move(state));
}

Status ProbeReader::Attach(int32_t pid, const std::string& path, bool launches_only) {
  struct Probe {
    const char* name;
    bpf_program* program;
    bool with_stack;
  };
  const Probe probes[] = {{"state", state_->skeleton->progs.take_batch, false},
                          {"records", state_->skeleton->progs.take_batch, false},
                          {"launch", state_->skeleton->progs.take_launch, true}};
  std::vector<Link> links;
  for (const Probe& probe : probes) {
    if (launches_only && !probe.with_stack) continue;
    bpf_link* link =
        bpf_program__attach_usdt(probe.program, pid, path.c_str(), "gpusonde", probe.name, nullptr);
    if (link == nullptr)
      return Fail(sources::KernelError(errno, fmt::format("attach to the probe {} of {}", probe.name, path)));
    links.emplace_back(link);
  }
  std::vector<Link>& kept = state_->links[pid];
  for (Link& link : links) kept.push_back(std::move(link));
  return {};
}

void ProbeReader::Detach(int32_t pid) { state_->links.erase(pid); }

bool ProbeReader::AttachedTo(int32_t pid) const { return state_->links.contains(pid); }

void ProbeReader::Drain(
    const std::function<void(const Decoder::Origin&, std::span<const std::byte> batch)>& visit) {
  state_->visit = &visit;
  (void)ring_buffer__consume(state_->ring.get());
  state_->visit = nullptr;
}

model::DropCounts ProbeReader::TakeDrops() {
  // What the ring had no room for shows as a gap in the process's numbers (Decoder), and so is not counted
  // twice.
  struct Counter {
    bpf_map* map;
    uint32_t index;
    DropReason reason;
  };
  bpf_map* stacks = state_->skeleton->maps.stack_counters;
  const Counter counters[] = {
      {state_->skeleton->maps.counters, GPUSONDE_GPU_UNREADABLE, DropReason::kGpuMalformed},
      {stacks, GPUSONDE_NO_USER_STACK, DropReason::kNoUserStack},
      {stacks, GPUSONDE_STACK_TRUNCATED, DropReason::kStackTruncated},
      {stacks, GPUSONDE_PYTHON_STACK_LOST, DropReason::kPythonStackLost},
      {stacks, GPUSONDE_PROCESSES_FULL, DropReason::kTooManyProcesses}};
  model::DropCounts drops;
  std::vector<uint64_t> by_cpu(static_cast<size_t>(libbpf_num_possible_cpus()));
  for (const auto& [map, index, reason] : counters) {
    if (bpf_map_lookup_elem(bpf_map__fd(map), &index, by_cpu.data()) != 0) continue;
    uint64_t total = 0;
    for (const uint64_t value : by_cpu) total += value;
    uint64_t& seen = state_->counters_seen[{map, index}];
    drops.Add(reason, static_cast<int64_t>(total - seen));
    seen = total;
  }
  return drops;
}

int ProbeReader::fd() const { return ring_buffer__epoll_fd(state_->ring.get()); }

void ProbeReader::Stop() { state_->links.clear(); }

}  // namespace gpusonde::cupti
