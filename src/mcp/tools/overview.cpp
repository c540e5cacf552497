// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "mcp/selection.h"
#include "mcp/tool.h"

namespace gpusonde::mcp {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownThreads = 5;

// Work over time observed; null where nothing was observed.
Json ShareOf(const Json& device) {
  const auto observed = device.value("observed_ns", int64_t{0});
  if (observed <= 0) return nullptr;
  return device.value("busy_ns", 0.0) / static_cast<double>(observed);
}

Json Devices(const Json& body) {
  Json devices = Json::array();
  for (const Json& device : body.value("devices", Json::array())) {
    Json shown = device;
    shown["streams"] = device.value("streams", Json::array()).size();
    shown["busy_share"] = ShareOf(device);
    devices.push_back(std::move(shown));
  }
  return devices;
}

Json Processes(const Json& body) {
  Json processes = Json::array();
  for (const Json& process : body.value("processes", Json::array())) {
    Json shown = process;
    Json& threads = shown["threads"];
    const size_t count = threads.size();
    if (count > kShownThreads) {
      threads.erase(threads.begin() + kShownThreads, threads.end());
      shown["threads_omitted"] = count - kShownThreads;
    }
    processes.push_back(std::move(shown));
  }
  return processes;
}

Result<std::string> RunOverview(Source& source, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Range range, ReadRange(source, arguments));
  ASSIGN_OR_RETURN(const std::string overview_text, source.Get("overview"));
  ASSIGN_OR_RETURN(const std::string devices, source.Get(Target("devices", range)));
  ASSIGN_OR_RETURN(const std::string processes, source.Get(Target("processes", range)));
  ASSIGN_OR_RETURN(const std::string summary, source.Get(Target("summary", range)));
  try {
    const Json overview = Json::parse(overview_text);
    const Json gpu = Json::parse(summary).at("gpu");
    Json found = {{"title", overview.at("title")},         {"live", overview.at("live")},
                  {"simulated", overview.at("simulated")}, {"range", Json::parse(range.bounds)},
                  {"cpus", overview.at("cpus")},           {"samples", overview.at("samples")},
                  {"kernels", overview.at("kernels")}};
    found["gpu_summary"] = gpu.is_null() ? Json() : Json{{"busy", gpu.at("busy")}, {"idle", gpu.at("idle")}};
    found["devices"] = Devices(Json::parse(devices));
    found["processes"] = Processes(Json::parse(processes));
    for (const char* key : {"sources", "drops", "notices"}) found[key] = overview.at(key);
    return found.dump();
  } catch (const Json::exception& error) {
    return Fail(ErrorCode::kInternal, error.what());
  }
}

}  // namespace

Tool OverviewTool() {
  std::vector<Parameter> parameters = RangeParameters();
  parameters.push_back(LimitParameter(10, 100));
  return {
      .name = "overview",
      .title = "What was recorded",
      .description =
          "What was recorded and how busy the GPUs were: time range, devices with the share of the "
          "observed time in which they worked, processes by CPU time, a summary in two sentences, and what "
          "is missing (drops, notices). Ask this first: other tools take process and device ids from here.",
      .parameters = std::move(parameters),
      .results = {{"title", "string", "The files, or the machine."},
                  {"live", "boolean", "Whether data still arrives."},
                  {"simulated", "boolean", "Whether the GPUs are simulated: then their times mean nothing."},
                  {"range", "object", "from_us and to_us of the data described; null without data."},
                  {"cpus", "integer", "CPUs of all machines."},
                  {"samples", "integer", "CPU samples in all data."},
                  {"kernels", "integer", "GPU kernels in all data."},
                  {"gpu_summary", "object", "What the GPUs did, and what the CPUs did meanwhile.", true},
                  {"devices", "array", "busy_share is busy_ns of observed_ns; null: not observed."},
                  {"processes", "array", "By CPU time (cpu_ns), largest first."},
                  {"sources", "array", "What recorded the data."},
                  {"drops", "array", "What was lost or has less detail, and how much."},
                  {"notices", "array", "Caveats for the user."}},
      .run = RunOverview};
}

}  // namespace gpusonde::mcp
