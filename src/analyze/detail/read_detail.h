// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/detail/critical_path.h"
#include "analyze/detail/operators.h"
#include "analyze/detail/waves.h"
#include "base/result.h"
#include "importers/clocks.h"
#include "importers/collectives.h"
#include "importers/trace.h"

namespace gpusonde::analyze {

// What further passes over a trace found: for its clocks and reported collectives, and in detail.
struct DetailResult {
  OperatorTable operators;
  std::vector<CriticalPath> paths;
  std::vector<RankWaves> waves;
  importers::Clocks clocks;
  importers::ReportedCollectives collectives;
  bool without_spans = false;  // operators were asked for, but no work was launched in any
  bool without_paths = false;  // so critical paths

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(operators);
    archive(paths);
    archive(waves);
    archive(clocks);
    archive(collectives);
    archive(without_spans);
    archive(without_paths);
  }
};

// Reads a whole trace in detail as far as options ask for it; nothing of formats without details (recordings,
// Nsight Compute's files). Errors: those of importers::OpenTrace and of reading.
Result<DetailResult> ReadDetail(const std::string& path, importers::TraceFormat format,
                                const Options& options);

}  // namespace gpusonde::analyze
