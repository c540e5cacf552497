// SPDX-License-Identifier: Apache-2.0
// A profiler plugin for NCCL of one version (GPUSONDE_CHAINED_VERSION) that appends each call to the file in
// NCCL_CHAINED_LOG: what a plugin behind gpusonde's gets must be what it gets alone. It wants the events of
// NCCL_CHAINED_MASK, refuses the communicators after the first NCCL_CHAINED_COMMUNICATORS, and aborts if it
// is to stop what has not started, or has stopped.
#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "wire/nvidia/nccl_profiler.h"

namespace {

std::mutex g_mutex;
uint64_t g_handles = 0;  // 1, 2, …: handles need not be addresses
std::set<uint64_t> g_started;
int g_communicators = 0;

void Write(const std::string& line) {
  std::FILE* file = std::fopen(std::getenv("NCCL_CHAINED_LOG"), "a");
  if (file == nullptr) std::abort();
  fmt::print(file, "{}\n", line);
  std::fclose(file);
}

uint64_t Number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

int Begin(void** context, int* mask, const std::string& described) {
  const std::lock_guard lock(g_mutex);
  const char* most = std::getenv("NCCL_CHAINED_COMMUNICATORS");
  if (most != nullptr && ++g_communicators > std::atoi(most)) return GPUSONDE_NCCL_INTERNAL_ERROR;
  *context = std::bit_cast<void*>(uint64_t{0x77});
  *mask = std::atoi(std::getenv("NCCL_CHAINED_MASK"));
  Write("init " + described);
  return 0;
}

template <class Event>
int Start(void* context, void** handle, Event* event) {
  const std::lock_guard lock(g_mutex);
  *handle = std::bit_cast<void*>(++g_handles);
  g_started.insert(g_handles);
  std::string more;
  if (event->type == GPUSONDE_NCCL_COLL) {
    if constexpr (requires { event->coll.max_channels; })
      more = fmt::format("{} {:x} {} {} {} {} {} {} {}", event->coll.communicator_name,
                         event->coll.communicator != 0, event->coll.sequence, event->coll.operation,
                         event->coll.count, event->coll.datatype, event->coll.max_channels,
                         event->coll.algorithm, event->coll.protocol);
    else
      more = fmt::format("{} {} {} {} {} {} {}", event->words[0], std::bit_cast<const char*>(event->words[1]),
                         event->words[4], std::bit_cast<const char*>(event->words[6]), event->words[7] & 0xff,
                         std::bit_cast<const char*>(event->words[8]),
                         std::bit_cast<const char*>(event->words[9]));
  }
  if (event->type == GPUSONDE_NCCL_PROXY_OP)
    more = fmt::format("peer {} steps {} bytes {}", event->proxy_op.peer, event->proxy_op.steps,
                       event->proxy_op.chunk_bytes);
  if (event->type == GPUSONDE_NCCL_KERNEL_CH) {
    if constexpr (requires { event->kernel_channel; })
      more = fmt::format("channel {}", event->kernel_channel);
    else
      more = fmt::format("channel {} {}", event->kernel_ch.channel, event->kernel_ch.timer != 0);
  }
  Write(fmt::format("start {:x} context {:x} rank {} parent {} = {} {}", event->type, Number(context),
                    event->rank, Number(event->parent), g_handles, more));
  return 0;
}

int Stop(void* handle) {
  const std::lock_guard lock(g_mutex);
  Write(fmt::format("stop {}", Number(handle)));
  if (g_started.erase(Number(handle)) == 0) std::abort();
  return 0;
}

template <class Arguments>
int RecordState(void* handle, int state, Arguments* arguments) {
  const std::lock_guard lock(g_mutex);
  Write(fmt::format("state {} {} {}", Number(handle), state, arguments != nullptr));
  return 0;
}

int Finalize(void* context) {
  const std::lock_guard lock(g_mutex);
  Write(fmt::format("finalize {:x}", Number(context)));
  return 0;
}

[[maybe_unused]] int InitV3(void** context, int* mask) { return Begin(context, mask, ""); }
[[maybe_unused]] int InitV4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks,
                            int rank, gpusonde_nccl_log log) {
  return Begin(context, mask,
               fmt::format("{} {} {} {} {} {}", name, hash != 0, nodes, ranks, rank, log != nullptr));
}
[[maybe_unused]] int InitV5(void** context, uint64_t hash, int* mask, const char* name, int nodes, int ranks,
                            int rank, gpusonde_nccl_log log) {
  return InitV4(context, mask, name, hash, nodes, ranks, rank, log);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
#define EXPORTED extern "C" __attribute__((visibility("default")))
#if GPUSONDE_CHAINED_VERSION == 3
EXPORTED const gpusonde_nccl_profiler_v3 ncclProfiler_v3;
const gpusonde_nccl_profiler_v3 ncclProfiler_v3 = {
    "chained", InitV3, Start<gpusonde_nccl_event_v3>, Stop, RecordState<gpusonde_nccl_state_v3>, Finalize};
#elif GPUSONDE_CHAINED_VERSION == 4
EXPORTED const gpusonde_nccl_profiler_v4 ncclProfiler_v4;
const gpusonde_nccl_profiler_v4 ncclProfiler_v4 = {
    "chained", InitV4, Start<gpusonde_nccl_event_v4>, Stop, RecordState<gpusonde_nccl_state_v4>, Finalize};
#elif GPUSONDE_CHAINED_VERSION == 5
EXPORTED const gpusonde_nccl_profiler_v5 ncclProfiler_v5;
const gpusonde_nccl_profiler_v5 ncclProfiler_v5 = {
    "chained", InitV5, Start<gpusonde_nccl_event_v5>, Stop, RecordState<gpusonde_nccl_state_v4>, Finalize};
#else
EXPORTED const gpusonde_nccl_profiler_v5 ncclProfiler_v6;
const gpusonde_nccl_profiler_v5 ncclProfiler_v6 = {
    "chained", InitV5, Start<gpusonde_nccl_event_v5>, Stop, RecordState<gpusonde_nccl_state_v4>, Finalize};
#endif
// NOLINTEND(readability-identifier-naming)
