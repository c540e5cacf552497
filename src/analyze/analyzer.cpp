// SPDX-License-Identifier: Apache-2.0
#include "analyze/analyzer.h"

#include <utility>

#include "analyze/report_builder.h"
#include "analyze/scale/trace_part.h"

namespace gpusonde::analyze {

Result<Report> Analyze(const std::vector<std::string>& paths, const Options& options) {
  ReportBuilder builder(options.alignment, options.communication, !options.steps.empty());
  ASSIGN_OR_RETURN(const Division division, Division::Make(paths, 1));
  TRY(ReadParts(paths, options, division, 0, [&builder](TracePart part) {
    builder.Add(part.path, part.info, part.state, std::move(part.ranks));
    builder.AddDetail(part.detail);
  }));
  return std::move(builder).Finish();
}

}  // namespace gpusonde::analyze
