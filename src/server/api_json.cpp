// SPDX-License-Identifier: Apache-2.0
#include "server/api_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "base/time.h"
#include "base/version.h"
#include "model/mig_name.h"

namespace gpusonde::server {
namespace {

// Rounded down to microseconds, so that [start, end) in microseconds covers the time in nanoseconds.
int64_t StartMicros(int64_t ns) { return ns / kNanosPerMicro - (ns % kNanosPerMicro < 0 ? 1 : 0); }
int64_t EndMicros(int64_t ns) { return ns / kNanosPerMicro + (ns % kNanosPerMicro > 0 ? 1 : 0); }

void WriteDevice(JsonWriter& json, const store::GpuDevice& device) {
  json.Field("device", device.device.ToHex()).Field("name", device.name).Field("uuid", device.uuid);
  json.Field("ordinal", device.ordinal).Field("simulated", device.simulated);
}

void WriteShare(JsonWriter& json, const store::DeviceShare& share) {
  json.BeginObject().Field("device", share.device.ToHex()).Field("kernels", share.kernels);
  json.Field("busy_ns", share.busy_ns).Field("memory_bytes", share.memory_bytes).EndObject();
}

void WriteOverhead(JsonWriter& json, const std::optional<store::ProfilingOverhead>& use) {
  json.Key("listening");
  if (!use.has_value()) {
    json.Value(std::optional<double>());
    return;
  }
  json.BeginObject().Field("budget", use->budget).Field("spent", use->spent).Field("cost", use->cost);
  json.Field("cost_low", use->cost_low).Field("cost_high", use->cost_high).EndObject();
}

// What distinguishes the MIG instances of a GPU, with a comma before it.
std::string MigSuffix(const store::GpuDevice& device) {
  const std::string_view part = model::MigPartOf(device.name);
  return part.empty() ? "" : fmt::format(", {}", part);
}

std::string IdOf(const store::GpuDevice& device) { return "gpu-" + device.device.ToHex(); }

void WriteValues(JsonWriter& json, const store::Strip& strip, double scale) {
  json.Key("values").BeginArray();
  for (const std::optional<double>& value : strip.values)
    json.Value(value.transform([scale](double share) { return share * scale; }));
  json.EndArray();
}

// The unit in which a metric is displayed, and how many of its own units make one of those.
struct ShownUnit {
  std::string_view name;
  double size;
};

ShownUnit ShownUnitOf(const model::MetricInfo& info) {
  if (info.kind == model::MetricKind::kFlags) return {"%", 0.01};  // the share of time in which one slows
  if (info.unit == "bytes") return {"GiB", 1 << 30};
  if (info.unit == "bytes/s") return {"MB/s", 1e6};
  return {info.unit, 1};
}

void WriteMetricStrip(JsonWriter& json, const store::MetricStrip& strip) {
  const model::MetricInfo& info = model::InfoOf(strip.metric);
  const auto [unit, size] = ShownUnitOf(info);
  json.BeginObject().Field("id", fmt::format("{}-{}", IdOf(strip.device), info.name));
  json.Field("label", fmt::format("{}{}", info.label, MigSuffix(strip.device)));
  json.Field("metric", info.name).Field("meaning", info.meaning);
  json.Field("unit", unit).Field("max", strip.most.transform([&](double most) { return most / size; }));
  WriteDevice(json, strip.device);
  WriteValues(json, strip.strip, 1 / size);
  json.EndObject();
}

void WriteMark(JsonWriter& json, const store::DeviceMark& mark) {
  const bool is_xid = mark.kind == store::DeviceMark::Kind::kXid;
  const std::string_view meaning = model::XidMeaning(mark.code);
  json.BeginObject().Field("kind", is_xid ? "xid" : "throttled").Field("device", mark.device.device.ToHex());
  json.Field("from_us", StartMicros(mark.from_ns))
      .Field("to_us", EndMicros(mark.to_ns))
      .Field("code", mark.code);
  json.Field("text", is_xid ? fmt::format("XID {}{}{}", mark.code, meaning.empty() ? "" : ": ", meaning)
                            : fmt::format("slowed down by {}",
                                          model::SlowingReasons(static_cast<uint64_t>(mark.code), true)));
  json.EndObject();
}

std::string_view CauseName(exporters::GpuAccount::IdleCause cause) {
  constexpr std::string_view kNames[] = {"cpu", "waits", "launch_threads", "unknown"};
  return kNames[static_cast<size_t>(cause)];
}

void WriteParts(JsonWriter& json, std::string_view key,
                const std::vector<exporters::GpuAccount::Part>& parts) {
  json.Key(key).BeginArray();
  for (const exporters::GpuAccount::Part& part : parts) {
    json.BeginObject().Field("name", part.name).Field("detail", part.detail);
    json.Field("time_ns", part.time_ns).EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string LabelOf(const store::GpuDevice& device) {
  return fmt::format("{}{}{}", device.ordinal < 0 ? "GPU" : fmt::format("GPU {}", device.ordinal),
                     MigSuffix(device), device.trace.empty() ? "" : ", " + device.trace);
}

std::string OverviewJson(const store::Overview& overview, const ApiFacts& facts) {
  JsonWriter json;
  json.BeginObject();
  json.Field("version", kVersion).Field("mode", facts.mode);
  json.Field("live", facts.live).Field("silent", facts.silent());
  json.Field("title", facts.title).Field("simulated", overview.simulated);
  json.Field("inject_library", facts.inject_library);
  json.Field("from_us", overview.from_ns.transform(StartMicros));
  json.Field("to_us", overview.to_ns.transform(EndMicros));
  json.Field("cpus", CpusOf(overview.sources));
  json.Key("sources").BeginArray();
  for (const store::Overview::SourceInfo& source : overview.sources) {
    json.BeginObject().Field("id", source.source.ToHex()).Field("host", source.host);
    json.Field("kind", source.kind).Field("hz", source.sampling_hz).EndObject();
  }
  json.EndArray();
  json.Field("samples", overview.samples).Field("kernels", overview.kernels);
  json.Key("drops").BeginArray();
  for (const store::Overview::Drop& drop : overview.drops) {
    json.BeginObject().Field("reason", drop.reason).Field("meaning", drop.meaning);
    json.Field("lost", drop.lost);
    json.Field("count", drop.count).EndObject();
  }
  json.EndArray();
  json.Key("notices").BeginArray();
  for (const std::string& notice : facts.notices()) json.Value(notice);
  json.EndArray().EndObject();
  return json.Take();
}

std::string StripsJson(const AllStrips& strips) {
  const store::Strip& cpu = strips.cpu;
  // Unsigned arithmetic: the ends come from a file and may be any times.
  const int64_t to_ns = std::max(cpu.from_ns, cpu.to_ns);
  const uint64_t span_ns = static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(cpu.from_ns);
  const size_t buckets = std::max<size_t>(cpu.values.size(), 1);
  JsonWriter json;
  json.BeginObject();
  json.Field("from_us", StartMicros(cpu.from_ns)).Field("to_us", EndMicros(to_ns));
  json.Field("bucket_us", static_cast<double>(span_ns) / kNanosPerMicro / static_cast<double>(buckets));
  json.Key("strips").BeginArray();
  // A device's metrics follow its own strip; those of a device without recorded GPU work come last.
  for (const store::DeviceStrip& gpu : strips.gpus) {
    json.BeginObject().Field("id", IdOf(gpu.device)).Field("label", LabelOf(gpu.device));
    json.Field("unit", "%").Field("max", 100.0);
    WriteDevice(json, gpu.device);
    WriteValues(json, gpu.strip, 100);
    json.Key("observed").BeginArray();
    for (const double share : gpu.observed) json.Value(share);
    json.EndArray().Key("partial").BeginArray();
    for (const double share : gpu.partial) json.Value(share);
    json.EndArray().EndObject();
    for (const store::MetricStrip& metric : strips.metrics)
      if (metric.device.device == gpu.device.device) WriteMetricStrip(json, metric);
  }
  for (const store::MetricStrip& metric : strips.metrics)
    if (std::ranges::none_of(strips.gpus, [&](const store::DeviceStrip& gpu) {
          return gpu.device.device == metric.device.device;
        }))
      WriteMetricStrip(json, metric);
  json.BeginObject().Field("id", "cpu").Field("label", "CPU").Field("unit", "cores");
  json.Field("max", strips.cpus > 0 ? std::optional(static_cast<double>(strips.cpus)) : std::nullopt);
  WriteValues(json, cpu, 1);
  json.EndObject().EndArray();
  json.Key("marks").BeginArray();
  for (const store::DeviceMark& mark : strips.marks.marks) WriteMark(json, mark);
  json.EndArray().Field("marks_omitted", strips.marks.omitted).EndObject();
  return json.Take();
}

std::string DevicesJson(const std::vector<store::DeviceUse>& devices) {
  JsonWriter json;
  json.BeginObject().Key("devices").BeginArray();
  for (const store::DeviceUse& use : devices) {
    json.BeginObject();
    WriteDevice(json, use.device);
    json.Field("label", LabelOf(use.device));
    json.Field("kernels", use.kernels).Field("busy_ns", use.busy_ns).Field("observed_ns", use.observed_ns);
    json.Field("partial_ns", use.partial_ns);
    json.Key("streams").BeginArray();
    for (const store::StreamUse& stream : use.streams)
      json.BeginObject().Field("stream", stream.stream).Field("busy_ns", stream.busy_ns).EndObject();
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

std::string ProcessesJson(std::vector<store::ProcessUse> processes,
                          const std::optional<std::vector<store::GpuUser>>& users) {
  std::map<Id128, const store::GpuUser*> by_process;
  if (users.has_value()) {
    for (const store::GpuUser& user : *users) by_process[user.process] = &user;
    std::set<Id128> with_cpu;
    for (const store::ProcessUse& process : processes) with_cpu.insert(process.process);
    for (const store::GpuUser& user : *users)
      if (!with_cpu.contains(user.process))
        processes.push_back({.process = user.process,
                             .pid = user.pid,
                             .name = user.name,
                             .command = user.command,
                             .container = user.container,
                             .started_ns = user.started_ns,
                             .exited_ns = user.exited_ns,
                             .threads = {}});
  }
  JsonWriter json;
  json.BeginObject().Key("processes").BeginArray();
  for (const store::ProcessUse& process : processes) {
    json.BeginObject().Field("id", process.process.ToHex()).Field("pid", process.pid);
    json.Field("name", process.name).Field("command", process.command);
    json.Field("container", process.container).Field("cpu_ns", process.cpu_ns);
    json.Field("started_us", StartMicros(process.started_ns));
    json.Field("exited_us", process.exited_ns.transform(EndMicros));
    json.Key("threads").BeginArray();
    for (const store::ThreadUse& thread : process.threads) {
      json.BeginObject().Field("tid", thread.tid).Field("name", thread.name);
      json.Field("cpu_ns", thread.cpu_ns).EndObject();
    }
    json.EndArray();
    if (users.has_value()) {
      const auto user = by_process.find(process.process);
      json.Field("gpu_observed_ns", user == by_process.end() ? 0 : user->second->observed_ns);
      json.Key("gpus").BeginArray();
      if (user != by_process.end())
        for (const store::DeviceShare& share : user->second->devices) WriteShare(json, share);
      json.EndArray();
      WriteOverhead(json, user == by_process.end() ? std::nullopt : user->second->overhead);
    }
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

std::string SummaryJson(const std::optional<exporters::GpuFacts>& gpu) {
  JsonWriter json;
  json.BeginObject().Key("gpu");
  if (!gpu.has_value()) {
    json.Value(std::optional<int64_t>()).EndObject();
    return json.Take();
  }
  const exporters::GpuAccount account = exporters::AccountOf(*gpu);
  json.BeginObject().Field("devices", static_cast<int64_t>(gpu->devices.size()));
  json.Field("busy_ns", gpu->busy_ns).Field("observed_ns", gpu->observed_ns);
  json.Field("partial_ns", gpu->partial_ns).Field("kernels", gpu->kernels);
  json.Field("sm_active", gpu->sm_active).Field("tensor_active", gpu->tensor_active);
  json.Field("busy", account.busy).Field("idle", account.idle);
  json.Field("idle_cause", CauseName(account.cause));
  WriteParts(json, "hottest", account.hottest);
  WriteParts(json, "while_idle", account.while_idle);
  WriteParts(json, "waiting_in", account.waiting_in);
  WriteParts(json, "launch_threads_in", account.launch_threads_in);
  json.EndObject().EndObject();
  return json.Take();
}

std::string FlameTreeJson(const FlameTree& tree) {
  JsonWriter json;
  json.BeginObject().Field("type", model::EnumNames<model::ProfileType>::Name(tree.type)).Field("unit", "ns");
  json.Field("total", tree.nodes.total_ns.front()).Field("samples", tree.samples);
  json.Field("one_second_in", tree.one_second_in);
  json.Key("strings").BeginArray();
  for (const std::string& text : tree.strings) json.Value(text);
  json.EndArray();
  json.Key("binaries").BeginArray();
  for (const model::Profile::Binary& binary : tree.binaries) {
    json.BeginObject().Field("name", binary.name).Field("path", binary.path);
    json.Field("build_id", binary.build_id).EndObject();
  }
  json.EndArray();
  json.Key("functions").BeginObject();
  json.Column("name", tree.functions.name).Column("binary", tree.functions.binary);
  json.Key("kind").BeginArray();
  for (const std::string_view kind : tree.functions.kind) json.Value(kind);
  json.EndArray();
  json.Column("file", tree.functions.file).Column("line", tree.functions.line);
  json.Column("internal", tree.functions.internal).EndObject();
  json.Key("nodes").BeginObject();
  json.Column("function", tree.nodes.function).Column("parent", tree.nodes.parent);
  json.Column("self", tree.nodes.self_ns).Column("total", tree.nodes.total_ns);
  if (!tree.nodes.interval_ns.empty()) json.Column("interval", tree.nodes.interval_ns);
  json.EndObject();
  json.Key("omitted").BeginObject();
  json.Field("nodes", tree.omitted.nodes).Field("total", tree.omitted.total_ns);
  json.EndObject();
  json.Key("hidden").BeginObject();
  json.Field("threads", tree.hidden.threads).Field("total", tree.hidden.total_ns);
  json.EndObject().EndObject();
  return json.Take();
}

std::string SourceJson(const SourceFile& source) {
  std::set<int32_t> numbers;
  for (const SourceFile::Times* times : {&source.cpu, &source.gpu, &source.waits})
    for (const auto& [line, time] : times->lines) numbers.insert(line);
  const std::vector<int32_t> lines(numbers.begin(), numbers.end());
  const auto column = [&](const SourceFile::Times& times, int64_t LineTime::* value) {
    std::vector<int64_t> values;
    for (const int32_t line : lines) {
      const auto at = times.lines.find(line);
      values.push_back(at == times.lines.end() ? 0 : at->second.*value);
    }
    return values;
  };
  JsonWriter json;
  json.BeginObject().Field("file", source.file).Key("total").BeginObject();
  json.Field("cpu", source.cpu.total_ns).Field("gpu", source.gpu.total_ns);
  json.Field("waits", source.waits.total_ns).EndObject();
  json.Key("lines").BeginObject().Column("line", lines);
  json.Column("cpu_self", column(source.cpu, &LineTime::self_ns));
  json.Column("gpu_self", column(source.gpu, &LineTime::self_ns));
  json.Column("waits_self", column(source.waits, &LineTime::self_ns));
  json.Column("cpu", column(source.cpu, &LineTime::total_ns));
  json.Column("gpu", column(source.gpu, &LineTime::total_ns));
  json.Column("waits", column(source.waits, &LineTime::total_ns)).EndObject();
  const bool readable = source.text.has_value();
  json.Key("text");
  if (readable)
    json.Value(source.text->text);
  else
    json.Value(std::optional<int64_t>());
  json.Key("modified_us");
  json.Value(readable ? std::optional(StartMicros(source.text->modified_ns)) : std::nullopt);
  json.Field("unreadable", readable ? "" : source.text.error().message).EndObject();
  return json.Take();
}

int64_t CpusOf(std::span<const store::Overview::SourceInfo> sources) {
  std::map<std::string_view, int64_t> by_host;
  for (const store::Overview::SourceInfo& source : sources) {
    int64_t& cpus = by_host[source.host];
    cpus = std::max<int64_t>(cpus, source.cpus);
  }
  int64_t all = 0;
  for (const auto& [host, cpus] : by_host) all += cpus;
  return all;
}

}  // namespace gpusonde::server
