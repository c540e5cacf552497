// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "diagnose/tuned.h"

namespace gpusonde::diagnose {

// The numbers by which incidents and warnings are compared with the time before, followed and reported. All
// are chosen, not fitted.
struct IncidentTable {
  Tuned<int64_t> awaited_ns{5 * kNanosPerSecond, "ns",
                            "an agent loads what observes host signals within half a second; with a tenth of "
                            "a CPU it took four"};
  Tuned<int64_t> xid_ns{100 * kNanosPerMilli, "ns", "a GPU may go on for a moment after the driver's report"};

  // Accounts of clean steps, by type.
  struct {
    Tuned<size_t> min_of_type{32, "steps", "kept however old they are"};
    Tuned<size_t> max_of_type{2048, "steps", "bounds memory; ten seconds of steps of 5 ms"};
    Tuned<size_t> min_observed{4, "steps", "then those from before the host's signals were observed go"};
    Tuned<int64_t> kept_ns{10 * kNanosPerSecond, "ns", "a slow onset may be taken for clean for seconds"};
  } clean;

  // A disturbance that was there from the beginning, or was taken for clean, has ended.
  struct {
    Tuned<int64_t> since_ns{3 * kNanosPerSecond, "ns", "for this long: pulses of a disturbance are closer"};
    Tuned<double> min_steps{20, "steps", "and so many: what the detector learns from"};
    Tuned<double> min_before{8, "steps", "of 32 long ones that are kept, as many as may be older"};
    Tuned<double> ratio{1.2, "ratio", "of the steps before, as for a slow start"};
    Tuned<double> share{0.5, "of the difference", "what the program itself does less is no disturbance"};
    Tuned<double> left{0.1, "of the disturbance", "may be left: with more it isn't over"};
  } disturbed;

  // What steps usually do.
  struct {
    Tuned<double> min_steps{8, "steps", "long ones: a recording may have no more"};
  } usual;

  // What disturbs all steps.
  struct {
    Tuned<double> min_steps{20, "steps", "fewer may be disturbed by chance"};
    Tuned<double> share{0.1, "of a step", "slow steps of that size would be reported"};
    Tuned<double> neighbour{10, "%", "of the GPU's time, used by one other program"};
    Tuned<double> straggler{0.25, "of a step",
                            "waiting for ranks; balanced ones wait for each other by turns"};
    Tuned<double> same_rank{0.75, "of that time", "for one and the same rank"};
    Tuned<double> clocks{0.5, "of the readings", "heat comes and goes"};
  } lasting;

  // The period before an incident in which host signals had their normal values.
  struct {
    Tuned<int64_t> min_ns{5 * kNanosPerSecond, "ns",
                          "if the previous incident ended later, the calm before that one counts"};
    Tuned<int64_t> max_ns{60 * kNanosPerSecond, "ns", "machines change their load over minutes"};
  } calm;

  // Another disturbance has taken the place of the one that an incident began with.
  struct {
    Tuned<int64_t> ns{2 * kNanosPerSecond, "ns", "of each, or more: less may be chance"};
    Tuned<int64_t> steps{10, "steps", "and so many: whom each of few waited for is chance"};
    Tuned<int64_t> after_pause_ns{kNanosPerSecond, "ns", "of the second, if steps were as before in between"};
    Tuned<double> likely{0.8, "", "confidence of each cause by itself"};
    Tuned<double> left{0.1, "of the lost time", "that the other cause explains at most"};
    Tuned<double> slowdown{1.1, "ratio", "of the second: less is chance, as for any incident"};
    Tuned<double> excess{0.25, "of the first one's",
                         "of the second: with less the first is over, and nothing new"};
    Tuned<double> change{0.1, "of the time in each one's states",
                         "by which the first gives way to the second: rounding and single steps make less"};
  } replaced;

  // Chains of processes that wait for each other.
  struct {
    Tuned<int> max_length{8, "processes", "the last one gets what remains"};
    Tuned<double> min_ns{1e5, "ns", "ranks that all wait for each other have no end"};
  } chain;

  struct {
    Tuned<size_t> max{1000, "reports", "of a program, which may run for months"};
    Tuned<int64_t> update_ns{kNanosPerSecond / 2, "ns", "how often an open incident is explained anew"};
    Tuned<int64_t> young_update_ns{kNanosPerSecond / 5, "ns", "the same while it is young and unexplained"};
    Tuned<int64_t> usual_ns{30 * kNanosPerSecond, "ns", "how often it is stored what steps usually do"};
    Tuned<int64_t> young_ns{5 * kNanosPerSecond, "ns", "an explanation is expected within as much"};
    Tuned<double> likely{
        0.8, "",
        "confidence; of the benchmark's kept trials six more negatives had an incident with a "
        "less likely cause or none, small or short; only that made no right answer wrong"};
    Tuned<double> likely_lost_ns{
        125e6, "ns", "and withdrawn if it ended after less lost time: nobody would look for its cause"};
    Tuned<double> news_lost_ns{1e9, "ns",
                               "or a large slow-down, before an incident is logged and sent: a program on a "
                               "shared machine had three "
                               "of 1.1 to 1.2 for some seconds in a minute"};
    Tuned<int64_t> unexplained_ns{kNanosPerSecond, "ns", "without a cause, before that is news"};
    Tuned<double> large_slowdown{1.5, "ratio", "is reported at once, whatever the cause"};
    Tuned<double> large_lost_ns{
        250e6, "ns",
        "and withdrawn if it ended after less lost time: four of four in the kept trials had no reason"};
    Tuned<int64_t> last_phase_ns{60 * kNanosPerSecond, "ns",
                                 "what a program does between its last step and its end takes less"};
    Tuned<double> notable_slowdown{1.1, "ratio", "with less and no likely cause it is mostly chance"};
    Tuned<double> ended_slowdown{
        1.05, "ratio",
        "withdrawn if it ended with less: of 1,372 incidents in the kept trials 15, four of them false "
        "alarms, and none with a right cause"};
    Tuned<int64_t> small_ns{
        3 * kNanosPerSecond, "ns",
        "how long a small one must have lasted: it was found for being high for a second"};
    Tuned<int64_t> notable_ns{60 * kNanosPerSecond, "ns", "unless it lasts: chance doesn't"};
    Tuned<int64_t> same_onset_ns{2 * kNanosPerSecond, "ns",
                                 "rows in another order shift the onset of an earlier run's by some steps"};
  } report;

  struct {
    Tuned<int64_t> calm_ns{30 * kNanosPerSecond, "ns", "a warning ends after as much without its sign"};
    Tuned<int64_t> horizon_ns{300 * kNanosPerSecond, "ns", "later incidents aren't linked to a warning"};
    Tuned<size_t> max{4096, "warnings", "bounds memory"};
  } warning;
};
inline constexpr IncidentTable kIncidentTable{};

}  // namespace gpusonde::diagnose
