// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/stats/batch_means.h"
#include "base/result.h"
#include "importers/trace.h"

namespace gpusonde::compare {

// Kernels of one name and launch shape.
struct KernelGroup {
  int64_t count = 0;
  double total_ns = 0;
  double log_mean = 0;       // of durations, to the base e
  analyze::MeanError error;  // of log_mean; unknown for communication

  // Adds launches of another rank or shape; the error is unknown if that of either is.
  void Merge(const KernelGroup& other);
};

// Kernels, copies or calls of one name.
struct Amount {
  int64_t count = 0;
  int64_t total_ns = 0;
  int64_t bytes = 0;  // of copies and sets

  void Merge(const Amount& other);
};

struct Kernel {
  Amount amount;
  analyze::MeanError
      launches;  // of its launches per time, relative to their mean squared; unknown of rare names
  bool communication = false;              // its duration depends on other ranks
  std::map<uint32_t, KernelGroup> groups;  // by launch shape; not those of traces with too many
  int64_t runs = 1;                        // that have it

  // Adds launches of other ranks or runs, without those runs.
  void Merge(const Kernel& other);
};
using Kernels = std::map<std::string, Kernel>;  // by name

// How a rank spent its time, in ns; `span_ns` is the sum of all others.
struct Times {
  double span_ns = 0;
  double compute_ns = 0;
  double communication_ns = 0;  // without concurrent computation
  double copy_ns = 0;           // without concurrent kernels or graphs
  double graph_ns = 0;          // graphs that were traced as a whole, without concurrent kernels
  double idle_host_ns = 0;      // because the host had launched nothing
  double idle_other_ns = 0;     // between two events, or waiting for something else than the host
};

// A run of a program, as its traces show it, or several runs together.
struct Run {
  std::vector<std::string> paths;
  int64_t runs = 1;
  int64_t ranks = 0;                // of the run that has most
  std::optional<int64_t> start_ns;  // of its first GPU event, since the Unix epoch; not of several runs
  std::optional<double> step_ns;    // the median step, mean over ranks; likewise
  std::string step_label;           // of the steps of all ranks; empty if they have none, or others
  double steps = 0;                 // mean over ranks, summed over runs
  double work = 1;                  // as a multiple of A's runs together; set by Compare
  Times times;                      // mean over ranks and runs
  analyze::MeanError progress;      // of the work per time, relative to its mean squared
  Kernels kernels;                  // summed over ranks and runs
  Kernels phases;                   // likewise, of annotated ranges by name without digits; see AddPhases
  bool all_phases = true;           // whether `phases` has the ranges of all processes
  std::map<std::string, Amount> graphs;
  std::map<std::string, Amount> copies;  // by kind: "htod pageable -> device"
  std::map<std::string, Amount> calls;
  std::vector<std::string> notes;  // what is missing, as sentences

  // Adds another run; times and errors are sums until FinishMerging.
  void Merge(const Run& other);
  void FinishMerging();
};

// Reads the traces of one run. Errors: those of analyze::Analyze; kInvalidArgument if there are no kernels.
Result<Run> ReadRun(const std::vector<std::string>& paths, const analyze::Options& options);

// Reads an opened trace, which is called `name`. A run without GPU work has no ranks and can't be compared.
// Errors: those of analyze::ReadOpened.
Result<Run> ReadRun(importers::Trace& trace, const std::string& name, const analyze::Options& options);

}  // namespace gpusonde::compare
