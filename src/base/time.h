// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusonde {

constexpr int64_t kNanosPerMicro = 1'000;
constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kNanosPerDay = 86'400 * kNanosPerSecond;

// CLOCK_REALTIME, ns since the Unix epoch: what every table stores.
int64_t EpochNow();

// CLOCK_MONOTONIC, ns since boot: the clock of BPF programs (bpf_ktime_get_ns) and perf events.
int64_t MonotonicNow();

// epoch − monotonic, measured once per source by bracketing one clock read between two of the other; the
// error is at most half the bracket (below 1 µs on an idle machine). Kept constant for the life of a
// recording, so that a step of the wall clock doesn't tear it: time inside a recording is monotonic.
int64_t MeasureEpochOffset();

// A wall clock that has moved relative to the monotonic one by more than this was set, not slewed.
constexpr int64_t kClockStepNs = 500 * kNanosPerMilli;

// Formats as "2026-11-21T01:32:05.123Z": UTC, milliseconds.
std::string FormatUtc(int64_t epoch_ns);
// Parts of the same: "2026-11-21 01:32:05", "2026-11-21 01:32" and "01:32:05".
std::string FormatUtcSecond(int64_t epoch_ns);
std::string FormatUtcMinute(int64_t epoch_ns);
std::string FormatUtcClock(int64_t epoch_ns);

// Parses to ns since the epoch: "2026-11-21", at midnight, or with a time of up to nine fractional digits,
// "2026-11-21T01:32:05.123Z". The Z may be missing, and a space may stand for the T. Nullopt for any other
// text, a day that doesn't exist, or a year before 1678 or after 2261 (the range of 64 bits).
std::optional<int64_t> ParseUtc(std::string_view text);

}  // namespace gpusonde
