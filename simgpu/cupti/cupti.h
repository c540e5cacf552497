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

// Built twice, as libcupti.so.12 and libcupti.so.13, whose records differ in size.
#ifndef SIMGPU_CUPTI_MAJOR
#error "SIMGPU_CUPTI_MAJOR says which CUPTI this is: 12 or 13"
#endif
inline constexpr bool kIs13 = SIMGPU_CUPTI_MAJOR >= 13;

// The knobs (README.md), read once.
struct Knobs {
  int64_t callback_ns;     // CPU time of every callback, in addition to the client's own
  int64_t activity_ns;     // CPU time of every recorded operation
  int64_t flush_ns;        // overhead that every flush reports in addition to the time it took
  int64_t late_us;         // maximum delay of a record after its operation
  int64_t late_enable_ms;  // how long enabling kernel records takes once a module is loaded
  double early;            // share of short operations that are delivered before the call returns
  double reorder;          // share of full buffers that are delivered after the next one
  double drop;             // share of records that are dropped
  double zero;             // share of records without timestamps
  double stale;            // share of records whose times are CLOCK_REALTIME's, whichever clock is set
};
const Knobs& TheKnobs();

// Uses CPU time for as long as a knob says.
void Spin(int64_t duration_ns);

// True with the given probability; the same sequence in every run (SIMGPU_SEED).
bool Chance(double probability);
// Uniform in [0, limit].
int64_t RandomUpTo(int64_t limit);

// Called first by every entry point: delays it or makes it fail as configured (SIMGPU_CUPTI_DELAY,
// SIMGPU_CUPTI_FAIL). SUCCESS: continue.
Result EnterCupti(const char* function);

// libcuda's table; null when there is no simulated driver in this process.
const ToolsTable* Tools();

// Attaches to the driver while there is a subscriber or an enabled kind, so that there is no cost otherwise.
// False: another libcupti in this process is attached.
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
// Whether this thread is in a callback of the resource domain.
bool InResourceCallback();
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
// How often cuptiFinalize succeeded in this process, for tests.
extern "C" uint32_t simgpuCuptiFinalizations();

// --- clock.cpp ---
// The current time of CUPTI's clock (the client's, else CLOCK_REALTIME), and a CLOCK_MONOTONIC time converted
// to it.
uint64_t Timestamp();
uint64_t ToTimestamp(int64_t monotonic_ns);
uint64_t ToRealTime(int64_t monotonic_ns);  // the default clock
void SetClock(gpusonde_cupti_timestamp* clock);
void AdjustClock();

}  // namespace simgpu::cupti
