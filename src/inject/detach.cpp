// SPDX-License-Identifier: Apache-2.0
#include "inject/detach.h"

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

enum State : uint32_t { kNone, kRequested, kRunning };

constexpr uint32_t kMinVersion = 130000;  // CUPTI_API_VERSION of CUDA 13.0
constexpr int64_t kPollNs = 1'000'000;

uint32_t g_state = kNone;  // atomic
uint32_t g_graphs = 0;     // atomic: the program uses graphs
uint64_t g_took_ns = 0;    // atomic
const Cupti* g_cupti = nullptr;

bool Change(uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&g_state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

}  // namespace

// Written once: it is called for every record of a graph.
void NoteGraphs() {
  if (__atomic_load_n(&g_graphs, __ATOMIC_RELAXED) == 0) __atomic_store_n(&g_graphs, 1, __ATOMIC_SEQ_CST);
}

bool CanFinalize(const Cupti& cupti) {
  return cupti.finalize != nullptr && cupti.version >= kMinVersion &&
         __atomic_load_n(&g_graphs, __ATOMIC_SEQ_CST) == 0;
}

void RequestFinalize(const Cupti& cupti) {
  g_cupti = &cupti;
  __atomic_store_n(&g_state, kRequested, __ATOMIC_SEQ_CST);
}

Withdrawal WithdrawFinalize(uint64_t deadline_ns) {
  if (Change(kRequested, kNone)) return Withdrawal::kWithdrawn;
  while (__atomic_load_n(&g_state, __ATOMIC_SEQ_CST) == kRunning) {
    if (NowNs() >= deadline_ns) return Withdrawal::kRunning;
    WaitWhile(&g_state, kRunning, kPollNs);
  }
  return Withdrawal::kNone;
}

bool FinalizePending() { return __atomic_load_n(&g_state, __ATOMIC_SEQ_CST) != kNone; }

void FinalizeIfRequested() {
  if (__atomic_load_n(&g_state, __ATOMIC_RELAXED) != kRequested || !CanFinalize(*g_cupti)) return;
  if (!Change(kRequested, kRunning)) return;
  const uint64_t begin_ns = NowNs();
  g_cupti->finalize();
  __atomic_fetch_add(&g_took_ns, NowNs() - begin_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&g_state, kNone, __ATOMIC_SEQ_CST);
}

uint64_t TakeFinalizeNs() { return __atomic_exchange_n(&g_took_ns, 0, __ATOMIC_RELAXED); }

}  // namespace gpusonde::inject
