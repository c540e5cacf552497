// SPDX-License-Identifier: Apache-2.0
#include "inject/detach.h"

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

enum State : uint32_t { kNone, kRequested, kRunning };

constexpr uint32_t kMinVersion = 130000;  // CUPTI_API_VERSION of CUDA 13.0
constexpr int64_t kPollNs = 1'000'000;

uint32_t g_state = kNone;  // atomic
const Cupti* g_cupti = nullptr;

bool Change(uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&g_state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

}  // namespace

bool CanFinalize(const Cupti& cupti) { return cupti.finalize != nullptr && cupti.version >= kMinVersion; }

void RequestFinalize(const Cupti& cupti) {
  g_cupti = &cupti;
  __atomic_store_n(&g_state, kRequested, __ATOMIC_SEQ_CST);
}

bool WithdrawFinalize() {
  if (Change(kRequested, kNone)) return true;
  while (__atomic_load_n(&g_state, __ATOMIC_SEQ_CST) == kRunning) WaitWhile(&g_state, kRunning, kPollNs);
  return false;
}

bool FinalizePending() { return __atomic_load_n(&g_state, __ATOMIC_SEQ_CST) != kNone; }

void FinalizeIfRequested() {
  if (__atomic_load_n(&g_state, __ATOMIC_RELAXED) != kRequested || !Change(kRequested, kRunning)) return;
  g_cupti->finalize();
  __atomic_store_n(&g_state, kNone, __ATOMIC_SEQ_CST);
}

}  // namespace gpusonde::inject
