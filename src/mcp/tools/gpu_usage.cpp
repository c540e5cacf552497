// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "mcp/selection.h"
#include "mcp/tool.h"
#include "usage/usage.h"

namespace gpusonde::mcp {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> RunGpuUsage(Source& source, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Range range, ReadRange(source, arguments));
  ASSIGN_OR_RETURN(const std::string usage_text,
                   source.Get(Target("usage", range, "by=" + arguments.Text("by"))));
  try {
    Json usage = Json::parse(usage_text);
    Json found = {
        {"range", Json::parse(range.bounds)}, {"gpus", usage.at("gpus")}, {"total", usage.at("total")}};
    found["groups"] = std::move(usage.at("groups"));
    for (Json& group : found["groups"]) group.erase("idle_cost");
    found["total"].erase("idle_cost");
    found["omitted"] = {{"groups", usage.at("omitted")}};
    return found.dump();
  } catch (const Json::exception& error) {
    return Fail(ErrorCode::kInternal, error.what());
  }
}

}  // namespace

Tool GpuUsageTool() {
  std::vector<Parameter> parameters = RangeParameters();
  parameters.push_back(
      {.name = "by",
       .description = "What GPU time is summed by. An owner is a pod, job, container, service or user.",
       .type = Parameter::Type::kChoice,
       .choices = {std::begin(usage::kByNames), std::end(usage::kByNames)}});
  parameters.push_back(LimitParameter(20, 100));
  return {.name = "gpu_usage",
          .title = "Who holds GPUs, and wastes them",
          .description =
              "GPU time by owner: how long GPUs were held, busy, idle, and not observed (who worked is "
              "unknown). Time "
              "of a GPU that several hold is divided equally. A process holds a GPU from its first work or "
              "memory "
              "on it until it ends.",
          .parameters = std::move(parameters),
          .results =
              {{"range", "object", "from_us and to_us of the data described; null without data."},
               {"gpus", "integer", "GPUs known, held or not."},
               {"total", "object", "Of all groups."},
               {"groups", "array",
                "By accountable_ns (busy, idle and unobserved), largest first. busy_share: of the time "
                "observed, with its 95 % interval; sampled_utilization: NVML's own figure. name is empty for "
                "processes that belong to no such group."}},
          .run = RunGpuUsage};
}

}  // namespace gpusonde::mcp
