// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "analyze/communication.h"
#include "analyze/report.h"
#include "base/result.h"

namespace gpusonde::analyze {

struct Options {
  int threads = 0;       // 0: one per core that this process may use
  bool partial = false;  // analyse the readable part of damaged traces
  // Bytes of temporary files.
  uint64_t temp_limit = std::numeric_limits<uint64_t>::max();
  bool operators = false;       // GPU work by what launched it, which reads the traces a second time
  bool critical_path = false;   // critical paths of steps, in the same second reading
  bool waves = false;           // what kernels lose in last waves of blocks, in the same second reading
  bool sequences = false;       // sequences of kernels that repeat
  bool kernel_summary = false;  // only sums of kernels: faster, as no timeline is built
  Alignment alignment = Alignment::kNone;
  CommunicationKernels communication;
  std::string steps;  // how the names of the ranges begin that are steps; empty: found (steps/)
  // The first group matches the rank in each file's name (without folders); without it, ranks come from the
  // traces.
  std::optional<std::regex> rank_from;
};

// Reads the traces and analyses them. The same traces in the same order give the same report, whatever the
// number of threads. Errors: those of importers::OpenTrace and of reading, for the first trace in the given
// order that fails; kInvalidArgument for names without a rank and for two traces of one rank at the same
// time.
Result<Report> Analyze(const std::vector<std::string>& paths, const Options& options);

}  // namespace gpusonde::analyze
