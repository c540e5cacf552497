// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diagnose/tuned.h"

namespace gpusonde::diagnose {

// The numbers by which causes are judged. Evidence is in nats: log odds against *unknown*. Unless the reason
// says that something was measured, a number is chosen; bench/diagnose/fit.py shows what labelled trials say
// of it. All members are Tuned<double>, so that a fit can number them in the order of this table.
struct CauseWeights {
  struct {
    Tuned<double> even_share{
        0.36, "of the lost time",
        "a cause that explains this share and has no other evidence gets a confidence of 0.5; it "
        "separates labels from other causes in 41 trials of the benchmark's train split"};
    Tuned<double> min_share{0.02, "of the lost time", "less is noise, whatever else speaks for the cause"};
    Tuned<double> min_named{0.25, "of the lost time",
                            "a cause that explains less isn't the cause, whatever else speaks for it"};
    Tuned<double> share{6, "nats", "a cause that explains 90 % gets a confidence of 0.96"};
    Tuned<double> max_unexplained{0.4, "of the lost time", "beyond it, what is known isn't the main part"};
    Tuned<double> min_confidence{0.5, "", "a cause that is less likely than *unknown* isn't named"};
    Tuned<double> keep{0.8, "of the first one's rank",
                       "a named cause stays first; two of a kind would alternate"};
  } ranking;

  // Pressure: the share of time in which some task waited (PSI, some).
  struct {
    Tuned<double> cpu_rise{0.05, "of the time", "a rise that counts in full"};
    Tuned<double> cpu{0.5, "nats", "it is of the machine, not of the step"};
    Tuned<double> io_rise{0.05, "of the time", "a rise that counts in full"};
    Tuned<double> io{0.5, "nats", "it is of the machine, not of the step"};
    Tuned<double> memory_rise{0.02, "of the time", "a rise that counts in full; it is rarer than the others"};
    Tuned<double> memory{1, "nats", "it is rarer than the others, so it says more"};
  } pressure;

  struct {
    Tuned<double> min_io_share{
        0.1, "of the blocked time",
        "with less of it in I/O, and no I/O pressure, it may be a lock or anything else"};
    Tuned<double> noticeable_bytes{1e6, "bytes/s", "a disk serves a hundred times as much"};
    Tuned<double> user_known{1, "nats", "another process uses the disks more than before"};
    Tuned<double> user_unknown{0.5, "nats against",
                               "nobody uses the disks more than before: they may be slow"};
    Tuned<double> over_io_throttling{3, "nats", "most of the wait is longer than what the limit takes"};
  } block_io;

  struct {
    Tuned<double> named{1, "nats", "all of the delay is attributed to other programs"};
  } cpu_contention;

  struct {
    Tuned<double> min_more_cpu{0.5, "of the explained time",
                               "a program that competes with itself uses more CPU time than before"};
    Tuned<double> same_cpu{5, "nats against", "it uses no more CPU time: it has fewer CPUs"};
  } cpu_contention_own;

  struct {
    Tuned<double> throttled_rise{0.02, "CPUs", "a rise that counts in full"};
    Tuned<double> throttled{2, "nats", "the kernel itself reports it"};
  } cpu_quota;

  struct {
    Tuned<double> min_fall{0.1, "of the CPUs", "of a few CPUs, one less for a tenth of the incident"};
    Tuned<double> cpus_fall{0.25, "of the CPUs", "a fall that counts in full"};
    Tuned<double> cpus{2, "nats", "the kernel itself reports it"};
    Tuned<double> over_own_contention{3, "nats", "there are no more threads, but fewer CPUs"};
  } fewer_cpus;

  struct {
    Tuned<double> clock_fall{0.1, "of the clock", "a fall that counts in full"};
    Tuned<double> clock{2, "nats", "lower clocks make kernels longer in proportion"};
    Tuned<double> reasons_rise{0.2, "of the readings", "a rise that counts in full"};
    Tuned<double> reasons{1.5, "nats", "the driver itself reports it"};
    Tuned<double> fell{0.95, "of the clock before", "clocks vary by a few percent by themselves"};
    Tuned<double> min_reasons_rise{0.1, "of the readings", "single readings say little"};
  } gpu_clocks;

  struct {
    Tuned<double> xid{2, "nats", "the driver itself reports it"};
  } gpu_fault;

  struct {
    Tuned<double> clock_change{100, "MHz", "a change that counts in full against an unchanged clock"};
    Tuned<double> same_clock{0.5, "nats", "kernels are longer for another reason than the clock"};
    Tuned<double> min_rise{5, "percentage points", "of GPU utilization; the driver's own is a few"};
    Tuned<double> utilization{1.5, "nats", "another process uses the GPU more than before"};
  } gpu_neighbour;

  struct {
    Tuned<double> min_steal{0.02, "CPUs", "a machine that shares its CPUs always has some"};
    Tuned<double> steal{1, "nats", "the hypervisor itself reports it"};
  } host_steal;

  struct {
    Tuned<double> throttled_rise{0.2, "of the time", "a rise that counts in full"};
    Tuned<double> throttled{1.5, "nats", "the I/O takes this long at the limit, however fast the device is"};
    Tuned<double> over_block_io{2, "nats",
                                "at a limit, waiting for the disk is mostly waiting for the limit"};
  } io_throttling;

  struct {
    Tuned<double> refault_pressure{
        0.05, "of the time", "with this much more memory pressure, I/O wait is for pages that were evicted"};
    Tuned<double> reclaiming{0.05, "of the excess", "more time in reclaim than this is no chance"};
    Tuned<double> over_block_io{1.5, "nats", "the program's own reads are of evicted pages"};
    Tuned<double> over_slow_data_loading{1.5, "nats", "the kernel reclaims within the loaders' CPU time"};
  } memory_pressure;

  struct {
    Tuned<double> no_growth{1.8, "ratio", "neighbours slow memory-bound programs down 1.2 to 1.9 times"};
    Tuned<double> full_growth{2.4, "ratio", "nothing but more work makes a program run this much longer"};
    Tuned<double> little_growth{4, "nats against", "a growth that a slower CPU explains as well"};
  } more_cpu_work;

  struct {
    Tuned<double> busy_gpu{20, "%", "a kernel that never ends keeps it at 100"};
    Tuned<double> worked{0.5, "of the excess", "most of what the program did"};
    Tuned<double> blocked{0.3, "of the time", "it is noticed after two to three of the first five seconds"};
  } hang;

  struct {
    Tuned<double> noticeable_bytes{1e6, "bytes/s", "a link carries a hundred times as much"};
    Tuned<double> sender_known{1, "nats", "another process sends more through the device than before"};
    Tuned<double> sender_unknown{0.5, "nats against", "nobody is known to send more than before"};
    Tuned<double> over_straggler{2, "nats", "a slow network between the ranks isn't the last rank's fault"};
    Tuned<double> over_busy_straggler{1, "nats",
                                      "the same, if the last rank did something else most of the time"};
  } network;

  struct {
    Tuned<double> min_rise{0.3, "segments/s",
                           "with total loss the timeout doubles each time, so retransmits are rare"};
    Tuned<double> min_rise_share{1. / 3, "of the rate during",
                                 "a network that always loses as many of a step's packets is no change"};
    Tuned<double> max_per_retransmit{1e9, "ns", "longer waits are an outage, or something else"};
    Tuned<double> retransmits{1.5, "nats", "the kernel itself counts them, by program"};
  } packet_loss;

  struct {
    Tuned<double> fewer_lanes{2, "nats", "the link itself reports it"};
    Tuned<double> lower_generation{1, "nats", "an idle link lowers its generation as well"};
    Tuned<double> generation_fall{0.5, "generations", "the mean of readings that differ by one at least"};
    Tuned<double> more_traffic_bytes{1e9, "bytes/s", "rates are measured over 20 ms once a second"};
    Tuned<double> more_traffic{0.5, "nats", "it may be the program's own"};
  } pcie_pressure;

  struct {
    Tuned<double> min_growth{0.1, "of the CPU time", "clocks and caches drift by as much"};
    Tuned<double> min_share{0.05, "of the lost time",
                            "less of it in the launch thread says nothing about its CPU"};
    Tuned<double> alike{2.52, "factor", "fitted; contention for memory slows some code more than other code"};
    Tuned<double> max_slowdown{3, "factor", "neighbours slow memory-bound programs down 1.2 to 1.9 times"};
    Tuned<double> both{2.2, "nats against", "no counter is read: the program itself may do more"};
    Tuned<double> one{2.6, "nats against", "the same, and there are no loaders that slowed down as well"};
    Tuned<double> over_slow_data_loading{1.5, "nats", "a slower CPU slows loaders as well"};
  } slow_cpu;

  struct {
    Tuned<double> no_growth{0.1, "of the loaders' CPU time", "a growth that counts as none"};
    Tuned<double> full_growth{0.3, "of the loaders' CPU time", "a growth that counts in full"};
    Tuned<double> not_grown{1.5, "nats against",
                            "the path waits for the loaders because something else changed"};
    Tuned<double> min_run_queue{0.05, "of the excess", "with less, the sentence rules out CPU contention"};
  } slow_data_loading;

  struct {
    Tuned<double> stopped{2, "nats", "the kernel itself reports it"};
    Tuned<double> hang{4, "nats against", "one stop of seconds is a hang"};
    Tuned<double> hung{0.5, "of the time", "a hung process that is stopped hangs for no other reason"};
  } stopped;

  struct {
    Tuned<double> main_share{0.7, "of the explained time", "the same rank came last most of the time"};
    Tuned<double> same_rank{0.5, "nats", "one rank that is always last, rather than different ones in turn"};
    Tuned<double> activity_share{0.5, "of its lost time", "less isn't what mainly delayed it"};
  } straggler;
};

#ifdef GPUSONDE_FITTING
// bench/rank_situations.cpp tries others.
inline CauseWeights kWeights{};  // NOLINT(readability-identifier-naming)
#else
inline constexpr CauseWeights kWeights{};
#endif

}  // namespace gpusonde::diagnose
