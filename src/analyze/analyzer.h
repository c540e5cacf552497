// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "analyze/report.h"
#include "base/result.h"

namespace gpusonde::analyze {

struct Options {
  int threads = 0;              // 0: one per core that this process may use
  bool partial = false;         // of damaged traces, take what is there
  bool kernel_summary = false;  // the kernels' sums alone: faster, for nothing has to be followed in time
  Alignment alignment = Alignment::kNone;
  // Its first group is the rank, in the name of each file (without folders); else the traces say it.
  std::optional<std::regex> rank_from;
};

// Reads the traces and analyses them. The same traces in the same order give the same report, whatever the
// number of threads. Errors: those of importers::OpenTrace and of reading; the first trace that fails, in the
// order given, is the one that is named; kInvalidArgument for names without a rank and for two traces of one
// rank at the same time.
Result<Report> Analyze(const std::vector<std::string>& paths, const Options& options);

}  // namespace gpusonde::analyze
