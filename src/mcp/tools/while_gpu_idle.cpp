// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "mcp/flame_graph.h"
#include "mcp/selection.h"
#include "mcp/tool.h"

namespace gpusonde::mcp {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> RunWhileGpuIdle(Source& source, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Range range, ReadRange(source, arguments));
  ASSIGN_OR_RETURN(const std::string summary, source.Get(Target("summary", range)));
  std::string more = "while_gpu_idle=1";
  if (const std::string device = arguments.Text("device"); !device.empty()) more += "&device=" + device;
  ASSIGN_OR_RETURN(const std::string graph, source.Get(Target("flamegraph", range, more)));
  ASSIGN_OR_RETURN(const std::string paths, HottestPaths(graph, range, *arguments.Integer(kLimit)));
  try {
    const Json gpu = Json::parse(summary).at("gpu");
    if (gpu.is_null())
      return Fail(ErrorCode::kNotFound,
                  "no GPU did anything in this selection, so none was idle between work");
    int64_t idle_ns = 0;
    if (__builtin_sub_overflow(gpu.at("observed_ns").get<int64_t>(), gpu.at("busy_ns").get<int64_t>(),
                               &idle_ns))
      return Fail(ErrorCode::kInternal, "the summary has times that can't be subtracted");
    Json found = {{"idle_ns", idle_ns},
                  {"observed_ns", gpu.at("observed_ns")},
                  {"idle_summary", gpu.at("idle")},
                  {"idle_cause", gpu.at("idle_cause")}};
    for (const char* parts : {"waiting_in", "launch_threads_in"}) found[parts] = gpu.at(parts);
    found.update(Json::parse(paths));
    return found.dump();
  } catch (const Json::exception& error) {
    return Fail(ErrorCode::kInternal, error.what());
  }
}

}  // namespace

Tool WhileGpuIdleTool() {
  std::vector<Parameter> parameters = SelectionParameters();
  parameters.push_back({.name = "device",
                        .description = "Only while this device was idle, by its id as `overview` lists it; "
                                       "default: any that the process used.",
                        .type = Parameter::Type::kId});
  parameters.push_back(LimitParameter(15, 50));
  std::vector<ResultField> results = {
      {"idle_ns", "integer", "Time without any work, summed over the devices observed."},
      {"observed_ns", "integer", "Time in which work would have been observed, summed over devices."},
      {"idle_summary", "string",
       "What the CPUs did meanwhile, in a sentence; empty if GPUs were never idle."},
      {"idle_cause", "string",
       "cpu: the CPUs worked meanwhile. waits: threads waited (see waiting_in). launch_threads: of a trace, "
       "whose "
       "CPUs were not sampled, the ranges and calls of the launching threads (see launch_threads_in)."},
      {"waiting_in", "array", "The lines in which the launching threads waited."},
      {"launch_threads_in", "array", "The ranges, operators and calls in which the launching threads were."}};
  std::ranges::copy(PathResults(), std::back_inserter(results));
  return {
      .name = "while_gpu_idle",
      .title = "What the CPU did while the GPUs were idle",
      .description =
          "CPU time while the GPUs had nothing to do, by function and by stack: what keeps the GPU waiting, "
          "such as a slow data loader. If idle_cause is waits, also ask hottest_paths with type off_cpu.",
      .parameters = std::move(parameters),
      .results = std::move(results),
      .run = RunWhileGpuIdle};
}

}  // namespace gpusonde::mcp
