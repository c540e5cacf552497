// SPDX-License-Identifier: Apache-2.0
#include "mcp/tool.h"

namespace gpusonde::mcp {

Tool TraceFindingsTool() {
  return {
      .name = "trace_findings",
      .title = "Findings and advice",
      .description =
          "The analysis of the files' GPU work: how busy each rank was and why idle, which kernels vary or "
          "run slowly at times, stragglers among ranks, exposed communication, launch overhead, with advice "
          "and what it may gain at most. Slow for large files the first time.",
      .needs_files = true,
      .parameters = {LimitParameter(20, 100)},
      .results = {{"overview", "array", "How busy the ranks were, in sentences."},
                  {"findings", "array", "What costs time, the largest cost (cost_ns) first; 0: unknown."},
                  {"advice", "array", "What to do about well-known problems, with its gain and evidence."},
                  {"notes", "array", "Caveats: events left out, by reason."}},
      .run = [](Source& source, const Arguments&) { return source.Findings(); }};
}

}  // namespace gpusonde::mcp
