// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "mcp/flame_graph.h"
#include "mcp/selection.h"
#include "mcp/tool.h"

namespace gpusonde::mcp {
namespace {

Result<std::string> RunHottestPaths(Source& source, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Range range, ReadRange(source, arguments));
  std::string more = "type=" + arguments.Text("type");
  if (const std::string wait = arguments.Text("wait"); wait != "any") more += "&wait=" + wait;
  ASSIGN_OR_RETURN(const std::string graph, source.Get(Target("flamegraph", range, more)));
  return HottestPaths(graph, range, *arguments.Integer(kLimit));
}

}  // namespace

Tool HottestPathsTool() {
  std::vector<Parameter> parameters = {
      {.name = "type",
       .description =
           "cpu: time on CPUs. gpu: time of kernels, copies and sets, above the stacks that launched "
           "them. off_cpu: time in which threads waited.",
       .type = Parameter::Type::kChoice,
       .choices = {"cpu", "gpu", "off_cpu"}},
      {.name = "wait",
       .description = "With type off_cpu: only waits of this kind.",
       .type = Parameter::Type::kChoice,
       .choices = {"any", "io", "lock", "condition", "sleep", "run_queue", "gpu_wait"}}};
  std::ranges::copy(SelectionParameters(), std::back_inserter(parameters));
  parameters.push_back(LimitParameter(15, 50));
  return {
      .name = "hottest_paths",
      .title = "Hottest functions and stacks",
      .description =
          "Where time went, by function and by stack: CPU time, GPU time (the kernels, and the lines that "
          "launched them) or waiting. For what the CPU did while GPUs were idle ask while_gpu_idle.",
      .parameters = std::move(parameters),
      .results = PathResults(),
      .run = RunHottestPaths};
}

}  // namespace gpusonde::mcp
