// SPDX-License-Identifier: Apache-2.0
#include "top/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "model/metric_catalogue.h"

namespace gpusonde::top {
namespace {

using nlohmann::json;

// A program that is profiled once a minute, or less often, has steps in this time.
constexpr int64_t kStepsUs = 150'000'000;

constexpr double kNowNs = 1e3 * static_cast<double>(kNowUs);

// A server that has been replaced by something else may send anything: whatever is absent or of another type
// reads as nothing.
const json& Member(const json& object, const char* key) {
  static const json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

const json& List(const json& object, const char* key) {
  static const json kEmpty = json::array();
  const json& value = Member(object, key);
  return value.is_array() ? value : kEmpty;
}

std::string Text(const json& object, const char* key) {
  const json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<double> AsNumber(const json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<double> Number(const json& object, const char* key) { return AsNumber(Member(object, key)); }

// Bounded, so that differences of two can't overflow.
std::optional<int64_t> Whole(const json& object, const char* key) {
  const std::optional<double> number = Number(object, key);
  if (!number.has_value()) return std::nullopt;
  constexpr double kBound = 4e18;
  return static_cast<int64_t>(std::clamp(*number, -kBound, kBound));
}

bool Flag(const json& object, const char* key) { return Member(object, key) == true; }

Result<json> Get(const Ask& ask, const std::string& target, const char* expected) {
  ASSIGN_OR_RETURN(const std::string body, ask(target));
  json answer = json::parse(body, nullptr, false);
  if (answer.is_object() && answer.contains(expected)) return answer;
  return Fail(ErrorCode::kCorrupt, fmt::format("the response to {} is not that of gpusonde's API", target));
}

std::vector<std::optional<double>> Values(const json& strip) {
  std::vector<std::optional<double>> values;
  for (const json& value : List(strip, "values")) values.push_back(AsNumber(value));
  return values;
}

// The newest value. The newest part of the time may still be without data.
std::optional<double> Newest(const std::vector<std::optional<double>>& values) {
  for (auto value = values.rbegin(); value != values.rend() && value - values.rbegin() < 2; ++value)
    if (value->has_value()) return *value;
  return std::nullopt;
}

// By id: the order of the API is that of the ordinals.
using GpusById = std::vector<std::pair<std::string, Gpu>>;

Gpu& GpuOf(const json& strip, GpusById& gpus) {
  const std::string id = Text(strip, "device");
  auto found = std::ranges::find(gpus, id, &std::pair<std::string, Gpu>::first);
  if (found == gpus.end()) {
    Gpu gpu{.ordinal = Whole(strip, "ordinal").value_or(-1),
            .name = Text(strip, "name"),
            .simulated = Flag(strip, "simulated"),
            .busy = {},
            .slowed_by = {}};
    found = gpus.insert(gpus.end(), {id, std::move(gpu)});
  }
  return found->second;
}

void AddStrip(const json& strip, GpusById& gpus, Snapshot& snapshot) {
  std::vector<std::optional<double>> values = Values(strip);
  const std::optional<double> now = Newest(values);
  if (Text(strip, "id") == "cpu") {
    snapshot.cpus = Number(strip, "max");
    snapshot.cpus_busy = now;
    return;
  }
  if (Text(strip, "device").empty()) return;
  Gpu& gpu = GpuOf(strip, gpus);
  const std::string metric = Text(strip, "metric");
  if (metric.empty()) {
    gpu.busy = std::move(values);
    gpu.busy_now = now;
    const json& observed = List(strip, "observed");
    if (!observed.empty()) gpu.observed_ns = AsNumber(observed.back()).value_or(0) * kNowNs;
  } else if (metric == "gpu.memory.used") {
    gpu.memory_gib = now;
    gpu.memory_max_gib = Number(strip, "max");
  } else if (metric == "gpu.power") {
    gpu.power_w = now;
    gpu.power_limit_w = Number(strip, "max");
  } else if (metric == "gpu.sm.active") {
    gpu.sm_active = now;
  } else if (metric == "gpu.tensor.active") {
    gpu.tensor = now;
  } else if (metric == "gpu.temperature") {
    gpu.temperature_c = now;
  } else if (metric == "gpu.clock.sm") {
    gpu.clock_mhz = now;
  }
}

void AddMark(const json& mark, int64_t now_us, GpusById& gpus) {
  const auto gpu = std::ranges::find(gpus, Text(mark, "device"), &std::pair<std::string, Gpu>::first);
  const std::optional<int64_t> code = Whole(mark, "code");
  if (gpu == gpus.end() || !code.has_value()) return;
  if (Text(mark, "kind") == "xid")
    gpu->second.xid = code;
  else if (Whole(mark, "to_us").value_or(0) > now_us - kNowUs)
    gpu->second.slowed_by = model::SlowingReasons(static_cast<uint64_t>(*code));
}

void AddGpus(const json& strips, int64_t now_us, GpusById& gpus, Snapshot& snapshot) {
  for (const json& strip : List(strips, "strips")) AddStrip(strip, gpus, snapshot);
  for (const json& mark : List(strips, "marks")) AddMark(mark, now_us, gpus);
}

// How long a process has run of the time now.
double LivedNs(const json& process, int64_t now_us) {
  const int64_t started_us = Whole(process, "started_us").value_or(0);
  return 1e3 * static_cast<double>(std::clamp<int64_t>(now_us - started_us, 0, kNowUs));
}

void AddProcess(const json& process, int64_t now_us, GpusById& gpus, Snapshot& snapshot) {
  const json& uses = List(process, "gpus");
  if (uses.empty() || !Member(process, "exited_us").is_null()) return;
  Process added{.pid = Whole(process, "pid").value_or(0),
                .command = Text(process, "command"),
                .gpus = {},
                .busy = {},
                .kernels_per_second = {},
                .memory_bytes = {},
                .spent = {},
                .budget = {},
                .cost = {},
                .cost_low = {},
                .cost_high = {}};
  if (added.command.empty()) added.command = Text(process, "name");
  added.cpu = Number(process, "cpu_ns").value_or(0) / kNowNs * 100;
  const double observed_ns = Number(process, "gpu_observed_ns").value_or(0);
  // Processes are profiled at different times. Sessions begin and end a little beside the edges of the time.
  constexpr double kTolerance = 0.05;
  const double missing_ns = LivedNs(process, now_us) - observed_ns;
  double busy_ns = 0, kernels = 0;
  for (const json& use : uses) {
    const auto gpu = std::ranges::find(gpus, Text(use, "device"), &std::pair<std::string, Gpu>::first);
    added.gpus.push_back(gpu == gpus.end() ? -1 : gpu->second.ordinal);
    if (gpu != gpus.end()) {
      const double alone_ns = kNowNs - gpu->second.observed_ns;
      gpu->second.busy_at_least |= missing_ns > alone_ns + kTolerance * kNowNs;
    }
    busy_ns += Number(use, "busy_ns").value_or(0);
    kernels += Number(use, "kernels").value_or(0);
    if (const auto bytes = Number(use, "memory_bytes"); bytes.has_value())
      added.memory_bytes = added.memory_bytes.value_or(0) + *bytes;
  }
  if (observed_ns > 0) {
    added.busy = 100 * busy_ns / observed_ns;
    added.kernels_per_second = kernels / (observed_ns / 1e9);
  }
  const json& overhead = Member(process, "listening");
  added.spent = Number(overhead, "spent");
  added.budget = Number(overhead, "budget");
  added.cost = Number(overhead, "cost");
  added.cost_low = Number(overhead, "cost_low");
  added.cost_high = Number(overhead, "cost_high");
  std::ranges::sort(added.gpus);
  snapshot.processes.push_back(std::move(added));
}

std::string NameOf(const json& process) {
  const int64_t tid = Whole(process, "tid").value_or(0);  // of one of several loops in the process
  return fmt::format("{} ({}{})", Text(process, "name"), Whole(process, "pid").value_or(0),
                     tid == 0 ? "" : fmt::format(", thread {}", tid));
}

// What disturbs all steps of programs that run now and have no incident.
void AddLasting(const json& found, Snapshot& snapshot) {
  for (const json& program : List(found, "programs")) {
    const int64_t pid = Whole(program, "pid").value_or(0);
    const std::string name = NameOf(program);
    if (std::ranges::find(snapshot.processes, pid, &Process::pid) == snapshot.processes.end() ||
        std::ranges::find(snapshot.incidents, name, &Incident::process) != snapshot.incidents.end())
      continue;
    std::string sentences;
    for (const json& part : List(program, "parts"))
      if (const std::string sentence = Text(part, "sentence"); !sentence.empty())
        sentences += (sentences.empty() ? "" : " ") + sentence;
    if (!sentences.empty()) snapshot.incidents.push_back({.process = name, .sentence = std::move(sentences)});
  }
}

void AddIncidents(const json& found, Snapshot& snapshot) {
  for (const json& incident : List(found, "incidents"))
    if (Member(incident, "to_us").is_null())
      snapshot.incidents.push_back({.process = NameOf(incident), .sentence = Text(incident, "sentence")});
  AddLasting(found, snapshot);
  for (const json& warning : List(found, "warnings"))
    if (Member(warning, "to_us").is_null())
      snapshot.incidents.push_back({.process = "", .sentence = Text(warning, "sentence")});
}

}  // namespace

Result<Snapshot> ReadSnapshot(const Ask& ask) {
  ASSIGN_OR_RETURN(const json overview, Get(ask, "overview", "mode"));
  Snapshot snapshot{.title = Text(overview, "title"),
                    .mode = Text(overview, "mode"),
                    .now_us = Whole(overview, "to_us"),
                    .gpus = {},
                    .processes = {},
                    .incidents = {},
                    .notices = {}};
  for (const json& notice : List(overview, "notices"))
    if (notice.is_string()) snapshot.notices.push_back(notice.get<std::string>());
  if (!snapshot.now_us.has_value()) return snapshot;
  const int64_t now_us = *snapshot.now_us;
  const auto range = [&](int64_t length_us) {
    return fmt::format("from_us={}&to_us={}", now_us - length_us, now_us);
  };
  GpusById gpus;
  ASSIGN_OR_RETURN(
      const json strips,
      Get(ask, fmt::format("strips?buckets={}&metrics=1&{}", kHistory, range(kHistory * kNowUs)), "strips"));
  AddGpus(strips, now_us, gpus, snapshot);
  ASSIGN_OR_RETURN(const json processes, Get(ask, "processes?gpus=1&" + range(kNowUs), "processes"));
  for (const json& process : List(processes, "processes")) AddProcess(process, now_us, gpus, snapshot);
  std::ranges::stable_sort(snapshot.processes, {}, &Process::pid);
  ASSIGN_OR_RETURN(const json incidents, Get(ask, "incidents?buckets=0&" + range(kStepsUs), "incidents"));
  AddIncidents(incidents, snapshot);
  for (auto& [id, gpu] : gpus) snapshot.gpus.push_back(std::move(gpu));
  return snapshot;
}

}  // namespace gpusonde::top
