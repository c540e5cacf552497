// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "diagnose/tuned.h"

namespace gpusonde::diagnose {

// The numbers by which steps are found: when rows are in order, what marks steps, and what is a wait for a
// request. All are chosen, not fitted.
struct StepTable {
  struct {
    Tuned<size_t> rounds{40, "rounds", "of rows, with work; four seconds of a polling agent"};
    Tuned<size_t> min_rounds{8, "rounds", "fewer say little about the worst"};
    Tuned<int64_t> margin_ns{20 * kNanosPerMilli, "ns", "more than rounds differ by chance"};
    Tuned<int64_t> max_age_ns{30 * kNanosPerSecond, "ns", "a clock that is off mustn't stop the watermark"};
  } watermark;

  struct {
    Tuned<size_t> min_steps{8, "occurrences", "the fewest to choose an anchor from"};
    Tuned<int64_t> min_named{3, "occurrences",
                             "of a range that is named as a step, which needn't be regular"};
    Tuned<double> min_step_ns{5e5, "ns", "more frequent work is only a part of a step"};
    Tuned<double> min_loop_ns{5e4, "ns", "a launch and a wait for it take ten to twenty microseconds"};
    Tuned<double> group_ns{
        5e6, "ns",
        "rounds of a short loop that take as long are a step: 400 remembered ones span the "
        "time until their signals have arrived"};
    Tuned<double> min_kernel_step_ns{
        4e6, "ns",
        "kernels and copies may take milliseconds themselves; shorter steps only "
        "if a long history has no other anchor"};
    Tuned<double> max_variation{
        0.3, "of the mean",
        "standard deviation of the amount of work between two anchors: alternating steps "
        "of several kinds are below it, 96 equal layers and what follows them have 0.48"};
    Tuned<double> min_alike{
        0.75, "of the intervals",
        "ranges and syncs occur once per layer only in programs that synchronize per layer, "
        "so this is enough for them; some steps are followed by an evaluation"};
    Tuned<double> alike{0.25, "of the median", "intervals that differ by less are alike"};
    Tuned<size_t> max_times_rarer{4, "ratio",
                                  "to the most frequent candidate; a preferred kind that is rarer marks "
                                  "groups of steps"};
    Tuned<double> as_frequent{0.9, "of the most frequent of its kind",
                              "candidates that are rarer mark groups of steps"};
    Tuned<double> rounds_alike{0.1, "of the rounds",
                               "what occurs once in a round is counted as often as there are rounds, give or "
                               "take"};
    Tuned<size_t> max_intervals_of_round{8, "intervals",
                                         "an evaluation after every ten steps doesn't make those one step"};
    Tuned<double> min_same_in_rounds{0.9, "of the intervals", "equal the one a round before"};
    Tuned<size_t> min_rounds{4, "rounds", "the fewest to tell from"};
    Tuned<double> min_idle_after_requests{0.8, "of the time without GPU work",
                                          "it follows the syncs that end requests of varying size"};
    Tuned<double> min_idle{0.1, "of all time", "less may be anything"};
  } anchor;

  struct {
    Tuned<int64_t> min_history_ns{kNanosPerSecond, "ns", "shorter ones show the start of a program"};
    Tuned<int64_t> young_history_ns{
        3 * kNanosPerSecond, "ns",
        "steps of a second or two may not have ended yet; no slow-down is certain "
        "before the detector has as much"};
    Tuned<int64_t> long_history_ns{10 * kNanosPerSecond, "ns", "a better anchor would have occurred"};
    Tuned<size_t> max_history{100'000, "pieces of work", "bounds memory"};
    Tuned<double> history_growth{1.25, "ratio", "the search is repeated when the history has grown so much"};
    Tuned<int64_t> long_pause_ns{5 * kNanosPerSecond, "ns",
                                 "between two searches of a long history, which cost a millisecond and more"};
    Tuned<size_t> max_names{20'000, "names", "programs with more generate them; the others count as one"};
    Tuned<double> lost_steps{20, "steps", "an anchor that doesn't occur for as much work is given up"};
    Tuned<double> lost_pieces{100, "pieces of work", "in addition, for steps of little work"};
    Tuned<double> min_first{0.9, "of the typical work", "less isn't the whole first step"};
    Tuned<double> max_first{1.5, "of the typical work", "more is set-up before the first step, too"};
    Tuned<int64_t> recurs{3, "steps", "of a signature, so that it recurs"};
    Tuned<double> min_recurring{0.5, "of the steps", "with signatures that recur; else types are merged"};
    Tuned<int64_t> types_after{24, "steps",
                               "from then on, types whose signatures mostly don't recur are merged"};
    Tuned<size_t> max_types{64, "types", "are counted; with another one, all counts are halved"};
  } finder;

  struct {
    Tuned<size_t> max_pieces{100'000, "pieces of work", "bounds memory"};
    Tuned<double> min_share{0.1, "of the calls of a stream's busiest thread",
                            "a thread that made fewer prepared the stream, rather than works with it"};
    Tuned<double> same_pace{1.1, "ratio", "of their rounds: stages of a pipeline, or lock-step workers"};
    Tuned<double> min_usual{0.75, "of the rounds", "of one kind, so that it is the loop's"};
    Tuned<double> same_names{0.8, "of the pieces", "have the names of the other's: the same program"};
    Tuned<double> same_length{2, "ratio", "of the median rounds: requests of any size"};
    Tuned<int64_t> pause_ns{kNanosPerSecond, "ns", "between two looks"};
    Tuned<int64_t> held_ns{4 * kNanosPerSecond, "ns", "rounds of half a second have come eight times"};
    Tuned<int64_t> searched_ns{11 * kNanosPerSecond, "ns", "rounds of two seconds have come four times"};
    Tuned<size_t> max_streams{64, "streams", "waited for; a program with more makes one for each request"};
    Tuned<size_t> max_loops{16, "loops", "of a process; bounds memory"};
  } loops;

  struct {
    Tuned<size_t> steps{40, "steps", "that are looked at"};
    Tuned<double> min_share{0.25, "of a step", "shorter waits for remote disks are hidden by GPU work"};
    Tuned<double> min_waiting{0.5, "of those steps", "so many wait if it is a habit"};
    Tuned<double> irregular{
        0.35, "of the median",
        "median distance from it: 0.7 for requests that arrive at random, 0.5 for waits of any "
        "length up to a bound; other nodes of a job are late by about the same time"};
    Tuned<double> max_rare{
        0.1, "of all steps",
        "the habit is given up if fewer waited; of all, so that a busy hour doesn't end it"};
    Tuned<int64_t> steps_until_rare{200, "steps", "after this many"};
    Tuned<size_t> requests{10, "waits", "long ones, of a server that waits only when it has no request"};
    Tuned<double> outside_share{0.02, "of the time",
                                "in waits for other processes; half of it keeps the habit"};
    Tuned<double> idle_share{0.1, "of the time", "in waits of any kind for external events, sleeps included"};
    Tuned<double> packets_share{0.1, "of the time",
                                "in those and waits for packets, which may also bring a trainer its data"};
    Tuned<double> sleepers_share{
        0.2, "of the waits of clean steps",
        "in waits for threads that sleep, if those are part of the habit; half of it keeps them so"};
  } habit;
};
inline constexpr StepTable kStepTable{};

}  // namespace gpusonde::diagnose
