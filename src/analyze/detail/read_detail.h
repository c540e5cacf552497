// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyze/analyzer.h"
#include "analyze/detail/critical_path.h"
#include "analyze/detail/operators.h"
#include "analyze/detail/waves.h"
#include "base/result.h"

namespace gpusonde::analyze {

// What a second pass over a trace, in detail, found.
struct DetailResult {
  OperatorTable operators;
  std::vector<CriticalPath> paths;
  std::vector<RankWaves> waves;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(operators);
    archive(paths);
    archive(waves);
  }
};

// Reads a whole trace in detail as far as options ask for it; nothing of formats without details (recordings,
// Nsight Compute's files). Errors: those of importers::OpenTrace and of reading.
Result<DetailResult> ReadDetail(const std::string& path, const Options& options);

}  // namespace gpusonde::analyze
