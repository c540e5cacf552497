// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <fmt/format.h>

#include <ctime>
#include <limits>

namespace gpusonde {
namespace {

int64_t Now(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * kNanosPerSecond + now.tv_nsec;
}

}  // namespace

int64_t EpochNow() { return Now(CLOCK_REALTIME); }
int64_t MonotonicNow() { return Now(CLOCK_MONOTONIC); }

int64_t MeasureEpochOffset() {
  int64_t best_bracket = std::numeric_limits<int64_t>::max();
  int64_t offset = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const int64_t before = MonotonicNow();
    const int64_t epoch = EpochNow();
    const int64_t after = MonotonicNow();
    if (after - before >= best_bracket) continue;
    best_bracket = after - before;
    offset = epoch - (before + best_bracket / 2);
  }
  return offset;
}

std::string FormatUtc(int64_t epoch_ns) {
  std::time_t seconds = epoch_ns / kNanosPerSecond;
  int64_t millis = epoch_ns % kNanosPerSecond / kNanosPerMilli;
  if (millis < 0) {
    millis += 1000;
    --seconds;
  }
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, millis);
}

}  // namespace gpusonde
