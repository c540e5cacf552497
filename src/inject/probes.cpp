// SPDX-License-Identifier: Apache-2.0
#include "inject/probes.h"

#include "wire/gpu_event.h"

// The kernel increments these while a consumer is attached (perf_event_open(2), uprobe's ref_ctr_offset).
// They must be in a writable segment, and the probe's note has their address.
#define SEMAPHORE(name)                                                                    \
  extern "C" {                                                                             \
  __attribute__((section(".probes"), used,                                                 \
                 visibility("hidden"))) volatile uint16_t gpusonde_##name##_semaphore = 0; \
  }
SEMAPHORE(state)
SEMAPHORE(records)
SEMAPHORE(launch)
SEMAPHORE(snapshot)
SEMAPHORE(ready)
SEMAPHORE(budget0)
SEMAPHORE(budget1)
SEMAPHORE(budget2)
SEMAPHORE(budget3)
SEMAPHORE(budget4)
SEMAPHORE(budget5)
SEMAPHORE(budget6)
SEMAPHORE(budget7)
SEMAPHORE(budget8)
SEMAPHORE(budget9)
SEMAPHORE(budget10)
SEMAPHORE(budget11)
SEMAPHORE(budget12)

// An ELF note as in sourceware.org/systemtap/wiki/UserSpaceProbeImplementation: the addresses of the probe,
// of .stapsdt.base and of the semaphore; provider, name, arguments.
#define PROBE(name, first, second)                                                \
  __asm__ volatile(                                                               \
      ".balign 8\n"                                                               \
      "990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                 \
      ".pushsection .note.stapsdt, \"?\", \"note\"\n"                             \
      ".balign 4\n"                                                               \
      ".4byte 992f - 991f, 994f - 993f, 3\n"                                      \
      "991: .asciz \"stapsdt\"\n"                                                 \
      "992: .balign 4\n"                                                          \
      "993: .8byte 990b\n"                                                        \
      ".8byte _.stapsdt.base\n"                                                   \
      ".8byte gpusonde_" #name                                                    \
      "_semaphore\n"                                                              \
      ".asciz \"gpusonde\"\n"                                                     \
      ".asciz \"" #name                                                           \
      "\"\n"                                                                      \
      ".asciz \"8@%%rdi 8@%%rsi\"\n"                                              \
      "994: .balign 4\n"                                                          \
      ".popsection\n"                                                             \
      ".ifndef _.stapsdt.base\n"                                                  \
      ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
      ".weak _.stapsdt.base\n"                                                    \
      ".hidden _.stapsdt.base\n"                                                  \
      "_.stapsdt.base: .space 1\n"                                                \
      ".size _.stapsdt.base, 1\n"                                                 \
      ".popsection\n"                                                             \
      ".endif\n" ::"D"(first),                                                    \
      "S"(second)                                                                 \
      : "memory")

namespace gpusonde::inject {

bool ProbeAttached(uint32_t channel) {
  switch (channel) {
    case GPUSONDE_GPU_STATE:
      return gpusonde_state_semaphore != 0;
    case GPUSONDE_GPU_RECORDS:
      return gpusonde_records_semaphore != 0;
    case GPUSONDE_GPU_LAUNCH:
      return gpusonde_launch_semaphore != 0;
    case GPUSONDE_GPU_SNAPSHOT:
      return gpusonde_snapshot_semaphore != 0;
    default:
      return false;
  }
}

bool ConsumerReady() { return gpusonde_ready_semaphore != 0; }

uint32_t BudgetPpm(uint32_t otherwise) {
  static constexpr uint32_t kBudgets[GPUSONDE_GPU_BUDGET_COUNT] = GPUSONDE_GPU_BUDGETS;
  const uint16_t attached[GPUSONDE_GPU_BUDGET_COUNT] = {
      gpusonde_budget0_semaphore, gpusonde_budget1_semaphore,  gpusonde_budget2_semaphore,
      gpusonde_budget3_semaphore, gpusonde_budget4_semaphore,  gpusonde_budget5_semaphore,
      gpusonde_budget6_semaphore, gpusonde_budget7_semaphore,  gpusonde_budget8_semaphore,
      gpusonde_budget9_semaphore, gpusonde_budget10_semaphore, gpusonde_budget11_semaphore,
      gpusonde_budget12_semaphore};
  for (uint32_t i = 0; i < GPUSONDE_GPU_BUDGET_COUNT; ++i)
    if (attached[i] != 0) return kBudgets[i];
  return otherwise;
}

// Not inlined: each inlined copy would emit a note of its own.
__attribute__((noinline)) void FireProbe(uint32_t channel, const void* batch, size_t bytes) {
  switch (channel) {
    case GPUSONDE_GPU_STATE:
      PROBE(state, batch, bytes);
      break;
    case GPUSONDE_GPU_RECORDS:
      PROBE(records, batch, bytes);
      break;
    case GPUSONDE_GPU_LAUNCH:
      PROBE(launch, batch, bytes);
      break;
    case GPUSONDE_GPU_SNAPSHOT:
      PROBE(snapshot, batch, bytes);
      break;
    case GPUSONDE_GPU_CHANNELS:  // never hit: the probe exists for its semaphore
      PROBE(ready, batch, bytes);
      PROBE(budget0, batch, bytes);  // likewise
      PROBE(budget1, batch, bytes);
      PROBE(budget2, batch, bytes);
      PROBE(budget3, batch, bytes);
      PROBE(budget4, batch, bytes);
      PROBE(budget5, batch, bytes);
      PROBE(budget6, batch, bytes);
      PROBE(budget7, batch, bytes);
      PROBE(budget8, batch, bytes);
      PROBE(budget9, batch, bytes);
      PROBE(budget10, batch, bytes);
      PROBE(budget11, batch, bytes);
      PROBE(budget12, batch, bytes);
      break;
    default:
      break;
  }
}

}  // namespace gpusonde::inject
