// SPDX-License-Identifier: Apache-2.0
#include <ctime>

#include "simgpu/cupti/cupti.h"

namespace simgpu::cupti {
namespace {

std::atomic<gpusonde_cupti_timestamp*> the_clock = nullptr;
std::atomic<int64_t> the_offset_ns = 0;  // of the clock to CLOCK_MONOTONIC
std::once_flag adjusted;

uint64_t RealTimeNs() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t Timestamp() {
  gpusonde_cupti_timestamp* clock = the_clock;
  return clock != nullptr ? clock() : RealTimeNs();
}

// Reads the clock between two readings of CLOCK_MONOTONIC, several times, and uses the tightest pair.
void AdjustClock() {
  int64_t tightest_ns = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const int64_t before_ns = NowNs();
    const auto there_ns = static_cast<int64_t>(Timestamp());
    const int64_t after_ns = NowNs();
    if (after_ns - before_ns >= tightest_ns) continue;
    tightest_ns = after_ns - before_ns;
    the_offset_ns = there_ns - (before_ns + after_ns) / 2;
  }
}

void SetClock(gpusonde_cupti_timestamp* clock) {
  the_clock = clock;
  AdjustClock();
}

uint64_t ToRealTime(int64_t monotonic_ns) {
  return RealTimeNs() - static_cast<uint64_t>(NowNs() - monotonic_ns);
}

uint64_t ToTimestamp(int64_t monotonic_ns) {
  std::call_once(adjusted, AdjustClock);
  return static_cast<uint64_t>(monotonic_ns + the_offset_ns);
}

}  // namespace simgpu::cupti
