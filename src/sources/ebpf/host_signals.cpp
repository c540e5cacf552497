// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/host_signals.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/time.h"
#include "host_signals.skel.h"
#include "model/signal_bucket.h"
#include "sources/ebpf/bpf_program.h"
#include "sources/ebpf/program_counters.h"

namespace gpusonde::ebpf {
namespace {

constexpr int64_t kBucketNs = GPUSONDE_SIGNAL_BUCKET_NS;
static_assert(kBucketNs == model::kSignalBucketNs);
constexpr int64_t kTickNs = 10 * kNanosPerMilli;  // USER_HZ is 100 on every x86-64 kernel
constexpr uint32_t kBatch = 1024;
constexpr int kMaxFinishes = 256;  // of 64 threads: as many as there can be

struct HostSignalsDeleter {
  void operator()(host_signals_bpf* skeleton) const { host_signals_bpf__destroy(skeleton); }
  void operator()(btf* types) const { btf__free(types); }
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

// Optional tracepoints, and the program for each: without one, the others still work.
struct Extra {
  const char* tracepoint;
  const char* program;
  std::string_view meaning;  // empty: reported with another
};
constexpr std::array kExtras = {
    Extra{"irq_handler_entry", "signal_irq_entry", "interrupts"},
    Extra{"irq_handler_exit", "signal_irq_exit", ""},
    Extra{"softirq_entry", "signal_softirq_entry", "softirqs and waits for the network"},
    Extra{"softirq_exit", "signal_softirq_exit", ""},
    Extra{"hrtimer_expire_entry", "signal_timer_entry", "timers that end waits"},
    Extra{"hrtimer_expire_exit", "signal_timer_exit", ""},
    Extra{"mm_vmscan_direct_reclaim_begin", "signal_reclaim_begin", "memory reclaim"},
    Extra{"mm_vmscan_direct_reclaim_end", "signal_reclaim_end", ""},
    Extra{"mm_vmscan_memcg_reclaim_begin", "signal_memcg_reclaim_begin", "memory reclaim of cgroups"},
    Extra{"mm_vmscan_memcg_reclaim_end", "signal_memcg_reclaim_end", ""},
    Extra{"block_bio_queue", "signal_bio", "block I/O"},
    Extra{"net_dev_queue", "signal_packet_sent", "senders of packets"},
    Extra{"qdisc_dequeue", "signal_packet_leaves", "queues of network devices"},
    Extra{"tcp_retransmit_skb", "signal_retransmit", "TCP retransmits"},
};

// `now`: the present bucket. A key's number has 32 bits, which wrap after 497 days; reported ones are recent.
SignalSum SumOf(const gpusonde_signal_key& key, uint64_t amount, int64_t now) {
  const int64_t bucket = now - static_cast<int32_t>(static_cast<uint32_t>(now) - key.bucket);
  return {.start_ns = bucket * kBucketNs,
          .pid = static_cast<int32_t>(key.pid),
          .tid = static_cast<int32_t>(key.tid),
          .other = static_cast<int32_t>(key.other),
          .signal = static_cast<gpusonde_signal>(key.signal),
          .amount = static_cast<int64_t>(amount)};
}

// Those that are attached only on demand.
constexpr std::array<std::string_view, 3> kNetwork = {"signal_packet_sent", "signal_packet_leaves",
                                                      "signal_retransmit"};

}  // namespace

struct HostSignals::State {
  std::unique_ptr<host_signals_bpf, HostSignalsDeleter> skeleton;
  std::unique_ptr<ring_buffer, HostSignalsDeleter> parts;
  const Visit* visit = nullptr;
  int64_t now = 0;  // the bucket in which sums were last read
  std::vector<bpf_link*> links;
  std::vector<bpf_link*> network_links;
  std::vector<std::string> absent;
  ProgramCounters counters = ProgramCounters(GPUSONDE_SIGNAL_COUNTERS);

  ~State() { Detach(); }
  void Detach() {
    Detach(links);
    Detach(network_links);
  }
  static void Detach(std::vector<bpf_link*>& attached) {
    for (bpf_link* link : std::exchange(attached, {})) bpf_link__destroy(link);
  }
  void LeaveOutAbsent();
  // Attaches the programs for the network, or all others; none of them on an error.
  Status Attach(bool network);
  static int OnPart(void* context, void* data, size_t size);
  Status Empty(int map, const Visit& to) const;
};

// Doesn't load programs whose tracepoints this kernel lacks, as one of them would keep all others from
// loading.
void HostSignals::State::LeaveOutAbsent() {
  // Read once: libbpf_find_vmlinux_btf_id reads it again at each call, which takes about 20 ms.
  const std::unique_ptr<btf, HostSignalsDeleter> types(btf__load_vmlinux_btf());
  if (types == nullptr) return;  // loading reports the reason
  for (const Extra& extra : kExtras) {
    const std::string type =
        fmt::format("btf_trace_{}", extra.tracepoint);  // the name under which BPF_TRACE_RAW_TP looks it up
    if (btf__find_by_name_kind(types.get(), type.c_str(), BTF_KIND_TYPEDEF) > 0) continue;
    bpf_program__set_autoload(bpf_object__find_program_by_name(skeleton->obj, extra.program), false);
    if (!extra.meaning.empty()) absent.emplace_back(extra.meaning);
  }
}

// Attaches each program separately, so that one that this kernel rejects is reported and the others work.
Status HostSignals::State::Attach(bool network) {
  std::vector<bpf_link*>& attached = network ? network_links : links;
  const size_t known_absent = absent.size();
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton->obj) {
    const std::string_view name = bpf_program__name(program);
    if (!bpf_program__autoload(program) || bpf_program__type(program) != BPF_PROG_TYPE_TRACING ||
        (std::ranges::find(kNetwork, name) != kNetwork.end()) != network)
      continue;
    bpf_link* link = bpf_program__attach(program);
    if (link != nullptr) {
      attached.push_back(link);
      continue;
    }
    const int error = errno;
    const auto* extra =
        std::ranges::find_if(kExtras, [&](const Extra& known) { return known.program == name; });
    if (extra == kExtras.end() || network) {
      Detach(attached);
      absent.resize(known_absent);
      return Fail(Explain(error, fmt::format("attach {}", name)));
    }
    if (!extra->meaning.empty()) absent.emplace_back(extra->meaning);
  }
  return {};
}

HostSignals::HostSignals(std::unique_ptr<State> state) : state_(std::move(state)) {}
HostSignals::HostSignals(HostSignals&&) noexcept = default;
HostSignals& HostSignals::operator=(HostSignals&&) noexcept = default;
HostSignals::~HostSignals() = default;

Result<HostSignals> HostSignals::Create(uint32_t ring_bytes) {
  SendLibbpfToLog();
  auto state = std::make_unique<State>();
  state->skeleton.reset(host_signals_bpf__open());
  if (state->skeleton == nullptr) return Fail(Explain(errno, "open the BPF program for host signals"));
  state->skeleton->rodata->pid_namespace = PidNamespace();
  bpf_map__set_max_entries(state->skeleton->maps.parts, std::bit_ceil(ring_bytes));
  state->LeaveOutAbsent();
  if (const int error = host_signals_bpf__load(state->skeleton.get()); error != 0)
    return Fail(Explain(-error, "load the BPF program for host signals"));
  state->parts.reset(
      ring_buffer__new(bpf_map__fd(state->skeleton->maps.parts), State::OnPart, state.get(), nullptr));
  if (state->parts == nullptr) return Fail(Explain(errno, "map the ring buffer of host signals"));
  return HostSignals(std::move(state));
}

Status HostSignals::Follow(int32_t pid) {
  if (state_->links.empty()) TRY(state_->Attach(false));
  const auto& maps = state_->skeleton->maps;
  return AddTarget(bpf_map__fd(maps.targets), bpf_map__fd(maps.target_changes), pid);
}

Status HostSignals::WatchNetwork(bool watch) {
  std::vector<bpf_link*>& attached = state_->network_links;
  if (watch == !attached.empty()) return {};
  if (watch) return state_->Attach(true);
  State::Detach(attached);
  return {};
}

int HostSignals::State::OnPart(void* context, void* data, size_t size) {
  const State& state = *static_cast<State*>(context);
  gpusonde_signal_part part{};
  if (size < sizeof part) return 0;  // can't happen with our own program
  std::memcpy(&part, data, sizeof part);
  (*state.visit)(SumOf(part.key, part.amount, state.now));
  return 0;
}

Status HostSignals::State::Empty(int map, const Visit& to) const {
  std::vector<gpusonde_signal_key> keys(kBatch);
  std::vector<uint64_t> values(kBatch);
  // The cursor of the batch operation is a hash bucket number, unrelated to our buckets.
  uint32_t cursor = 0;
  for (uint32_t* from = nullptr;; from = &cursor) {
    uint32_t count = kBatch;
    uint32_t next = 0;
    const int error =
        bpf_map_lookup_and_delete_batch(map, from, &next, keys.data(), values.data(), &count, nullptr);
    if (error != 0 && errno != ENOENT) return Fail(ErrnoError(errno, "read the sums of host signals"));
    for (uint32_t i = 0; i < count; ++i) to(SumOf(keys[i], values[i], now));
    if (error != 0) return {};
    cursor = next;
  }
}

Status HostSignals::Drain(const Visit& visit) {
  const int finish = bpf_program__fd(state_->skeleton->progs.signal_finish);
  LIBBPF_OPTS(bpf_test_run_opts, run);
  bool more = true;
  // Threads that have run again meanwhile may be left for the next time.
  for (int i = 0; i < kMaxFinishes && more; ++i) {
    if (bpf_prog_test_run_opts(finish, &run) != 0)
      return Fail(ErrnoError(errno, "finish the sums of host signals"));
    more = run.retval != 0;
  }
  state_->now = MonotonicNow() / kBucketNs;
  state_->visit = &visit;
  const int consumed = ring_buffer__consume(state_->parts.get());
  state_->visit = nullptr;
  if (consumed < 0) return Fail(ErrnoError(-consumed, "read the parts of the sums of host signals"));
  const uint32_t was = state_->skeleton->bss->written;
  __atomic_store_n(&state_->skeleton->bss->written, was + 1, __ATOMIC_SEQ_CST);
  const auto& maps = state_->skeleton->maps;
  return state_->Empty(bpf_map__fd((was & 1) != 0 ? maps.sums_odd : maps.sums_even), visit);
}

std::optional<HostSignals::Other> HostSignals::FindProcess(int32_t pid) const {
  const auto key = static_cast<uint32_t>(pid);
  gpusonde_signal_process process{};
  if (bpf_map_lookup_elem(bpf_map__fd(state_->skeleton->maps.others), &key, &process) != 0)
    return std::nullopt;
  return Other{.name = std::string(process.name, ::strnlen(process.name, sizeof process.name)),
               .start_ticks = static_cast<int64_t>(process.started_ns) / kTickNs};
}

const std::vector<std::string>& HostSignals::absent() const { return state_->absent; }

model::DropCounts HostSignals::DrainDrops() {
  using enum model::DropReason;
  static constexpr model::DropReason kReasons[GPUSONDE_SIGNAL_COUNTERS] = {kSignalsLost, kSignalsLost,
                                                                           kTooManyProcesses};
  model::DropCounts drops;
  state_->counters.Take(bpf_map__fd(state_->skeleton->maps.counters), kReasons, drops);
  return drops;
}

void HostSignals::Stop() { state_->Detach(); }

}  // namespace gpusonde::ebpf
