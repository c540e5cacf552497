// SPDX-License-Identifier: Apache-2.0
#include "analyze/analyzer.h"

#include <utility>

#include "analyze/report_builder.h"
#include "analyze/scale/trace_part.h"

namespace gpusonde::analyze {

Result<Report> Analyze(const std::vector<std::string>& paths, const Options& options) {
  ReportBuilder builder(options.alignment);
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const Division division, Division::Make({path}, 1));
    ASSIGN_OR_RETURN(std::vector<TracePart> parts, ReadParts({path}, options, division, 0));
    builder.Add(path, parts[0].info, parts[0].state, std::move(parts[0].ranks));
  }
  return std::move(builder).Finish();
}

}  // namespace gpusonde::analyze
