// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <mutex>

#include "simgpu/cuda/tools.h"
#include "simgpu/machine/clock.h"
#include "wire/nvidia/cupti.h"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::cupti {

using Result = gpusonde_cupti_result;

// Built twice, as libcupti.so.12 and libcupti.so.13: records grew between the two.
#ifndef SIMGPU_CUPTI_MAJOR
#error "SIMGPU_CUPTI_MAJOR says which CUPTI this is: 12 or 13"
#endif
inline constexpr bool kIs13 = SIMGPU_CUPTI_MAJOR >= 13;

// The knobs (README.md), read once.
struct Knobs {
  int64_t callback_ns;     // CPU time that every callback costs, beside the client's own
  int64_t activity_ns;     // CPU time that every recorded operation costs
  int64_t late_us;         // records are there up to this long after their operation
  int64_t late_enable_ms;  // how long enabling kernel records takes once a module is loaded
  double early;            // share of short operations that are delivered before the call returns
  double reorder;          // share of full buffers that are delivered after the next one
  double drop;             // share of records that are dropped
  double zero;             // share of records without timestamps
};
const Knobs& TheKnobs();

// True with the given probability; the same sequence in every run (SIMGPU_SEED).
bool Chance(double probability);
// Uniform in [0, limit].
int64_t RandomUpTo(int64_t limit);

// What every entry point begins with: knobs may make it slow or let it fail (SIMGPU_CUPTI_DELAY,
// SIMGPU_CUPTI_FAIL). SUCCESS: go on.
Result EnterCupti(const char* function);

// libcuda's table; null when there is no simulated driver in this process.
const ToolsTable* Tools();

// Attached to the driver while somebody subscribed or enabled a kind, so that nobody pays else. False:
// another libcupti of this process is attached.
bool KeepAttached();

struct WantedCallbacks {
  std::bitset<1024> driver;
  std::bitset<1024> runtime;
  std::bitset<64> resource;
  std::bitset<8> synchronize;
  std::bitset<512> nvtx;
  std::bitset<8> state;
};

// --- callbacks.cpp ---
bool AnySubscriber();
void DropSubscriber();
void OnApi(ApiEvent& event);
void OnResource(const ResourceEvent& event);
void OnSynchronized(void* context, void* stream);

// --- activity.cpp ---
bool AnyKind();
bool KindEnabled(uint32_t kind);
void OnOperation(const Operation& operation);
void OnApiExit(const ApiEvent& event, int32_t result);
bool WantsGraphTrace();
void StopActivity();

// --- clock.cpp ---
// What CUPTI calls now: the client's clock, else CLOCK_REALTIME; and a moment of CLOCK_MONOTONIC in it.
uint64_t Timestamp();
uint64_t ToTimestamp(int64_t monotonic_ns);
void SetClock(gpusonde_cupti_timestamp* clock);
void AdjustClock();

}  // namespace simgpu::cupti
