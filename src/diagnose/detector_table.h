// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "diagnose/tuned.h"

namespace gpusonde::diagnose {

// The numbers of the detector. "Scale" is the deviation of clean steps (MAD as a standard deviation).
struct DetectorTable {
  struct {
    Tuned<int64_t> warm_up_steps{3, "steps",
                                 "the first steps of a program compile, allocate and fill caches"};
    Tuned<size_t> learn_steps{20, "steps", "the fewest clean steps to compute thresholds from"};
    Tuned<size_t> max{1024, "steps", "of all types; what the bootstrap draws from"};
    Tuned<int64_t> long_ns{10 * kNanosPerSecond, "ns", "then a slow start is forgotten"};
    Tuned<double> slow_start{1.2, "ratio",
                             "of the first three seconds; drift alone makes them 1.1 times as slow"};
    Tuned<size_t> min_of_type{4, "steps", "fewer say nothing about a type"};
    Tuned<size_t> of_type{64, "steps", "kept per type, if they cover at least the time below"};
    Tuned<int64_t> of_type_ns{10 * kNanosPerSecond, "ns", "short steps are many, but drift over seconds"};
    Tuned<size_t> max_of_type{1024, "steps", "bounds memory"};
    Tuned<size_t> sum_up_share{16, "", "a type's median and mean are updated when it has grown by 1/16"};
    Tuned<size_t> hold{12, "steps", "a clean step joins this much later: it may precede an onset"};
    Tuned<size_t> refresh{32, "steps", "thresholds are updated when at least this many are new"};
    Tuned<size_t> refresh_share{16, "", "and 1/16 of the baseline"};
  } baseline;

  // Steps of a type that differ in work are compared with those of their size.
  struct {
    Tuned<size_t> steps{20, "steps", "the fewest to fit a line to: seven in each third"};
    Tuned<double> min_range{1.3, "ratio", "of the work in the largest third to that in the smallest"};
    Tuned<double> max_deviation{0.7, "of that without the line",
                                "a line that explains less isn't worth its error"};
  } by_work;

  struct {
    Tuned<double> slowdown{1.1, "ratio", "clocks and caches drift by as much; less isn't worth acting on"};
    Tuned<double> warm_up_slowdown{1.3, "ratio", "until the baseline has the time below"};
    Tuned<int64_t> warm_up_ns{3 * kNanosPerSecond, "ns", "programs change their pace in their first seconds"};
    Tuned<double> lost_steps{1.2, "steps", "three steps at half the speed lose 1.5"};
    Tuned<double> lost_ns{70e6, "ns", "more than a preemption by the hypervisor or an interrupt takes"};
    Tuned<double> lost_beside_longest_ns{40e6, "ns", "the same, without the longest step"};
    Tuned<double> scale{0.01, "log ratio", "timestamps and scheduling vary by as much"};
    Tuned<size_t> steps_of_mean{4, "steps", "the mean without the longest needs three"};
    Tuned<size_t> slow_steps{2, "steps", "a single one is chance"};
  } min;

  // CUSUMs: most sensitive to a shift of twice their reference value.
  struct {
    Tuned<double> small_reference{0.75, "scales", "for shifts of one and a half scales"};
    Tuned<double> small_max{4, "scales", "of one step, so that outliers don't count as a shift"};
    Tuned<double> large_reference{3, "scales", "for shifts of six scales"};
    Tuned<double> large_max{8, "scales", "of one step: one alone stays below the threshold"};
    Tuned<double> min_threshold{6, "scales", "more than one capped step adds"};
    Tuned<double> tail_quantile{0.99, "", "the tail begins beyond this quantile of clean steps"};
    Tuned<double> beyond_tail{1.1, "ratio", "and is this much longer"};
    Tuned<double> tail_reference{0.2, "of the steps", "the CUSUM grows if more of them lie in the tail"};
    Tuned<double> min_tail{2, "steps", "three steps in the tail, at least"};
  } cusum;

  // The bootstrap that the thresholds of the CUSUMs come from.
  struct {
    Tuned<int> runs{200, "runs", "the quantile is that of the fourth highest"};
    Tuned<int> run_steps{300, "steps", "the CUSUM returns to 0 many times in as many clean steps"};
    Tuned<int> block{8, "steps", "steps that vary in clusters stay together"};
    Tuned<double> quantile{0.98, "", "of the highest value in each run"};
    Tuned<double> caution{
        20, "steps", "thresholds are raised by 20 steps over those of the baseline: few underestimate tails"};
  } bootstrap;

  // Means over longer and longer runs of steps.
  struct {
    Tuned<int64_t> window_ns{kNanosPerSecond, "ns",
                             "the median doesn't move when one step in five is throttled"};
    Tuned<int64_t> long_window_ns{5 * kNanosPerSecond, "ns",
                                  "for rare, much longer steps: a GPU that stalls twice for a moment"};
    Tuned<size_t> min_blocks{8, "blocks", "the fewest to estimate a standard deviation from"};
    Tuned<size_t> doublings{3, "doublings", "of the length, to extrapolate the deviation from"};
    Tuned<double> deviations{4, "standard deviations",
                             "a larger mean isn't chance, although each step is tested"};
    Tuned<double> highest_factor{1.75, "times the excess", "of the highest mean of clean steps"};
    Tuned<double> max_ratio{3, "ratio", "single steps are capped at this in the search for the onset"};
    Tuned<size_t> min_recent{20, "steps", "kept, however long they take"};
  } mean;

  // Single steps that each lose much.
  struct {
    Tuned<double> lost_ns{40e6, "ns", "a preemption takes less"};
    Tuned<double> chance{
        0.005, "",
        "of as many in a second: of simulated programs that stalled three times a second more in "
        "pulses 73 instead of 59 % were found, with a sixth more false alarms"};
    Tuned<double> counted_ns{600e9, "ns", "of clean steps; then older ones count half"};
  } outlier;

  struct {
    Tuned<double> factor{3, "ratio",
                         "times the longest mean of all types and the ratio of the longest clean step"};
    Tuned<int64_t> min_ns{200 * kNanosPerMilli, "ns", "scheduling alone may take as much"};
  } overrun;

  // A much larger slow-down within an incident begins another one.
  struct {
    Tuned<double> factor{3, "times the excess", "of the incident so far"};
    Tuned<double> ratio{1.4, "ratio", "smaller ones are fluctuations of the first"};
    Tuned<int> steps{3, "steps", "fewer say nothing"};
    Tuned<double> max_share{0.5, "of the time before", "the incident before must be known well enough"};
  } worse;

  // A small slow-down that is followed by a large one: two incidents, whatever their causes.
  struct {
    Tuned<double> ratio{1.5, "ratio", "from here on a slow-down is large, as for reports"};
    Tuned<double> factor{5, "times the excess",
                         "of the small one, and above that ratio of any run of its steps: what builds up "
                         "grows by less, and pulses are alike"};
    Tuned<int64_t> after_ns{2 * kNanosPerSecond, "ns",
                            "after the onset; earlier the small one may be chance, or build up"};
  } large;

  // A pause within an incident: if another cause follows it, that is another incident.
  struct {
    Tuned<int64_t> ns{kNanosPerSecond / 2, "ns", "of steps none of which is slow; less is chance"};
    Tuned<size_t> steps{5, "steps", "and so many, as for the calm after an incident"};
  } pause;

  // An incident ends when steps are as before; pulses of one disturbance that are closer are one incident.
  struct {
    Tuned<int64_t> ns{3 * kNanosPerSecond, "ns", "for this long"};
    Tuned<size_t> steps{5, "steps", "and so many"};
    Tuned<double> slow_share{0.1, "of the steps", "may still be slow"};
    Tuned<double> clean_factor{1.5, "times the baseline's share", "or as many as were as long before"};
    Tuned<double> excess{0.25, "of the incident's excess", "may remain"};
    Tuned<int64_t> unknown_ns{10 * kNanosPerSecond, "ns",
                              "of only unknown types: the program does something else"};
    Tuned<int> unknown_steps{10, "steps", "and so many"};
  } calm;
};
inline constexpr DetectorTable kDetector{};

}  // namespace gpusonde::diagnose
