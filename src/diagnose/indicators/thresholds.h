// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "diagnose/tuned.h"

namespace gpusonde::diagnose {

// The numbers by which indicators are judged. All are chosen, not fitted; the table `warnings` shows how
// early and how often they are right.
struct IndicatorThresholds {
  struct {
    Tuned<int64_t> half_ns{20 * kNanosPerSecond, "ns", "two slopes over this long determine the equilibrium"};
    Tuned<ptrdiff_t> min_of_half{15, "readings", "three quarters of those that are expected"};
    Tuned<double> min_rise{3, "°C", "over both halves: readings are whole degrees"};
    Tuned<double> steady{0.75, "of the next slope", "less: work began or grew; readings are whole degrees"};
    Tuned<double> max_seconds{180, "s", "the extrapolation is worth nothing beyond a few time constants"};
  } temperature;

  struct {
    Tuned<int64_t> recent_ns{5 * kNanosPerSecond, "ns", "a power limit is averaged over a second or more"};
    Tuned<int64_t> before_ns{60 * kNanosPerSecond, "ns", "long enough to know the usual draw"};
    Tuned<size_t> min_recent{3, "readings", "more than half of those that are expected"};
    Tuned<size_t> min_before{10, "readings", "some seconds of the minute"};
    Tuned<double> near_limit{0.95, "of the limit", "the driver lowers clocks from about here on"};
    Tuned<double> usual{0.88, "of the limit", "a program that always draws more is no change"};
  } power;

  // Counters of corrected errors.
  struct {
    Tuned<int64_t> recent_ns{30 * kNanosPerSecond, "ns", "errors come in bursts"};
    Tuned<int64_t> before_ns{120 * kNanosPerSecond, "ns", "long enough to know the usual rate"};
    Tuned<size_t> min_readings{3, "readings", "a rate needs two windows"};
    Tuned<double> min{10, "errors", "single ones are usual"};
    Tuned<double> factor{3, "times the usual", "rates vary by themselves"};
  } errors;

  // Pressure (PSI, some).
  struct {
    Tuned<int64_t> recent_ns{5 * kNanosPerSecond, "ns", "shorter than most steps of a rise"};
    Tuned<int64_t> before_ns{60 * kNanosPerSecond, "ns", "long enough to know the usual pressure"};
    Tuned<int64_t> min_known_ns{20 * kNanosPerSecond, "ns", "less says little about what is usual"};
    Tuned<double> min{0.1, "of the time", "less hardly delays anyone"};
    Tuned<double> factor{3, "times the usual", "pressure varies by itself"};
  } pressure;
};
inline constexpr IndicatorThresholds kThresholds{};

}  // namespace gpusonde::diagnose
