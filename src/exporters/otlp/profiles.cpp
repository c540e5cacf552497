// SPDX-License-Identifier: Apache-2.0
#include "exporters/otlp/profiles.h"

#include <fmt/format.h>
#include <otlp.pb.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/gzip.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/version.h"

// OpenTelemetry's profiles, gzip'd: an ExportProfilesServiceRequest (src/exporters/proto/otlp.proto).
//
// Addresses and mappings are those of our pprof files (pprof.cpp). There is one resource per container and
// one for processes outside of containers, of each host, as the specification wants it of profilers of whole
// machines. A profile of OTLP has one number per sample, so each resource has two: time and count.
namespace gpusonde::exporters {
namespace {

constexpr std::string_view kOtlpKernelMapping = "[kernel.kallsyms]";
constexpr std::string_view kNanoseconds = "nanoseconds";

// Index 0 of every table means none, so indices are ours plus one.
int32_t IndexOf(int32_t index) { return index + 1; }

// Values of profile.frame.type (OpenTelemetry's semantic conventions, registry of `profile`); empty: none
// applies. "jit" is a value of our own.
std::string_view FrameTypeOf(model::FrameKind kind) {
  switch (kind) {
    case model::FrameKind::kNative:
      return "native";
    case model::FrameKind::kKernel:
      return "kernel";
    case model::FrameKind::kJit:
      return "jit";
    case model::FrameKind::kPython:
      return "cpython";
    case model::FrameKind::kGpu:
      return "cuda";
    case model::FrameKind::kUnknown:
      return {};
  }
  return {};
}

// The name of a profile's time and of its count, as in our pprof files.
std::pair<std::string_view, std::string_view> TypesOf(model::ProfileType type) {
  switch (type) {
    case model::ProfileType::kGpu:
      return {"gpu_kernel_time", "gpu_operations"};
    case model::ProfileType::kOffCpu:
      return {"off_cpu", "waits"};
    case model::ProfileType::kCpu:
      break;
  }
  return {"cpu", "samples"};
}

std::string BytesOf(const Id128& id) {
  std::string bytes;
  for (const uint64_t half : {id.high, id.low})
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>((half >> shift) & 0xFF);
  return bytes;
}

void AddResourceAttribute(otlp::Resource& resource, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  otlp::KeyValue& attribute = *resource.add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_value()->set_string_value(ToUtf8(text));
}

class OtlpProfileWriter {
 public:
  OtlpProfileWriter(const model::Profile& profile, const Options& options)
      : profile_(profile), options_(options), tables_(*out_.mutable_dictionary()) {
    tables_.add_mapping_table();
    tables_.add_location_table();
    tables_.add_function_table();
    tables_.add_link_table();
    tables_.add_attribute_table();
    tables_.add_stack_table();
    String("");
  }

  const otlp::ProfilesData& Write() {
    for (const model::Profile::Function& function : profile_.functions) WriteFunction(function);
    for (const model::Profile::Binary& binary : profile_.binaries) AddMapping(binary.path, binary.build_id);
    for (const model::Profile::Location& location : profile_.locations) WriteLocation(location);
    for (const std::vector<int32_t>& stack : profile_.stacks) {
      otlp::Stack& out = *tables_.add_stack_table();
      for (const int32_t location : stack)
        out.add_location_indices(location < 0 ? UnknownLocation() : IndexOf(location));
    }
    for (const model::Profile::Thread& thread : profile_.threads)
      thread_attributes_.push_back(AttributesOf(thread));
    for (const std::vector<size_t>& samples : SamplesByResource()) WriteResource(samples);
    return out_;
  }

 private:
  int32_t String(std::string_view text) {
    const auto [entry, added] = strings_.try_emplace(ToUtf8(text), tables_.string_table_size());
    if (added) tables_.add_string_table(entry->first);
    return entry->second;
  }

  // Attributes are equal if the texts are: each key has values of one type.
  otlp::AnyValue* NewAttribute(std::string_view key, std::string value, int32_t& index) {
    const auto [entry, added] =
        attributes_.try_emplace({std::string(key), std::move(value)}, tables_.attribute_table_size());
    index = entry->second;
    if (!added) return nullptr;
    otlp::KeyValueAndUnit& out = *tables_.add_attribute_table();
    out.set_key_strindex(String(key));
    return out.mutable_value();
  }
  int32_t TextAttribute(std::string_view key, std::string_view text) {
    int32_t index = 0;
    if (otlp::AnyValue* value = NewAttribute(key, std::string(text), index))
      value->set_string_value(ToUtf8(text));
    return index;
  }
  int32_t NumberAttribute(std::string_view key, int64_t number) {
    int32_t index = 0;
    if (otlp::AnyValue* value = NewAttribute(key, std::to_string(number), index))
      value->set_int_value(number);
    return index;
  }
  int32_t FlagAttribute(std::string_view key) {
    int32_t index = 0;
    if (otlp::AnyValue* value = NewAttribute(key, "true", index)) value->set_bool_value(true);
    return index;
  }

  void WriteFunction(const model::Profile::Function& function) {
    otlp::Function& out = *tables_.add_function_table();
    out.set_name_strindex(String(function.name));
    out.set_system_name_strindex(String(function.system_name));
    out.set_filename_strindex(String(function.file));
    out.set_start_line(function.line);
  }

  int32_t AddMapping(std::string_view file, std::string_view build_id) {
    otlp::Mapping& out = *tables_.add_mapping_table();
    out.set_filename_strindex(String(file));
    if (!build_id.empty())
      out.add_attribute_indices(TextAttribute("process.executable.build_id.gnu", build_id));
    return tables_.mapping_table_size() - 1;
  }

  // The mapping that a location is in; 0: none.
  int32_t MappingOf(const model::Profile::Location& location) {
    if (location.binary >= 0) return IndexOf(location.binary);
    if (location.kind != model::FrameKind::kKernel) return 0;
    if (kernel_mapping_ == 0) kernel_mapping_ = AddMapping(kOtlpKernelMapping, "");
    return kernel_mapping_;
  }

  void WriteLocation(const model::Profile::Location& location) {
    otlp::Location& out = *tables_.add_location_table();
    out.set_address(static_cast<uint64_t>(location.address));
    for (const model::Profile::Line& line : location.lines) {
      otlp::Line& out_line = *out.add_lines();
      out_line.set_function_index(line.function < 0 ? UnknownFunction() : IndexOf(line.function));
      out_line.set_line(line.line);
    }
    if (const std::string_view type = FrameTypeOf(location.kind); !type.empty())
      out.add_attribute_indices(TextAttribute("profile.frame.type", type));
    const int32_t mapping = MappingOf(location);
    if (mapping == 0) return;
    out.set_mapping_index(mapping);
    otlp::Mapping& in = *tables_.mutable_mapping_table(mapping);
    in.set_memory_limit(std::max(in.memory_limit(), out.address() + 1));
  }

  int32_t UnknownFunction() {
    if (unknown_function_ == 0) {
      WriteFunction({.name = "[unknown]", .system_name = "", .file = ""});
      unknown_function_ = tables_.function_table_size() - 1;
    }
    return unknown_function_;
  }

  // For a frame without a known address.
  int32_t UnknownLocation() {
    if (unknown_location_ == 0) {
      tables_.add_location_table()->add_lines()->set_function_index(UnknownFunction());
      unknown_location_ = tables_.location_table_size() - 1;
    }
    return unknown_location_;
  }

  const model::ProcessFacts& FactsOf(const model::Profile::Thread& thread) const {
    static const model::ProcessFacts unknown;
    const auto found = options_.processes.find(thread.process);
    return found == options_.processes.end() ? unknown : found->second;
  }
  const model::Profile::Thread& ThreadOf(size_t sample) const {
    return profile_.threads[static_cast<size_t>(profile_.samples[sample].thread)];
  }

  std::vector<int32_t> AttributesOf(const model::Profile::Thread& thread) {
    // The name of the program's file, else the kernel's short name of the process.
    const std::string& path = FactsOf(thread).executable;
    const std::string name = path.substr(path.rfind('/') + 1);
    std::vector<int32_t> attributes = {
        NumberAttribute("process.pid", thread.pid),
        TextAttribute("process.executable.name", name.empty() ? thread.process_name : name),
        NumberAttribute("thread.id", thread.tid), TextAttribute("thread.name", thread.name)};
    if (!path.empty()) attributes.push_back(TextAttribute("process.executable.path", path));
    return attributes;
  }

  // Indices of samples; the resource with most time is first, as viewers show the first one by default.
  std::vector<std::vector<size_t>> SamplesByResource() const {
    std::map<std::pair<std::string, std::string>, std::vector<size_t>> by_resource;
    for (size_t i = 0; i < profile_.samples.size(); ++i) {
      const model::ProcessFacts& facts = FactsOf(ThreadOf(i));
      by_resource[{facts.host, facts.container}].push_back(i);
    }
    std::vector<std::vector<size_t>> all;
    for (auto& [resource, samples] : by_resource) all.push_back(std::move(samples));
    std::ranges::stable_sort(all, std::ranges::greater(),
                             [this](const std::vector<size_t>& samples) { return TimeOf(samples); });
    return all;
  }

  int64_t TimeOf(const std::vector<size_t>& samples) const {
    return std::accumulate(samples.begin(), samples.end(), int64_t{0}, [this](int64_t sum, size_t sample) {
      return sum + profile_.samples[sample].weight_ns;
    });
  }

  void WriteResource(const std::vector<size_t>& samples) {
    otlp::ResourceProfiles& out = *out_.add_resource_profiles();
    const model::ProcessFacts& facts = FactsOf(ThreadOf(samples.front()));
    AddResourceAttribute(*out.mutable_resource(), "host.name", facts.host);
    AddResourceAttribute(*out.mutable_resource(), "container.id", facts.container);
    AddResourceAttribute(*out.mutable_resource(), facts.pod.empty() ? "container.name" : "k8s.container.name",
                         facts.container_name);
    AddResourceAttribute(*out.mutable_resource(), "k8s.pod.name", facts.pod);
    AddResourceAttribute(*out.mutable_resource(), "k8s.namespace.name", facts.pod_namespace);
    otlp::ScopeProfiles& scope = *out.add_scope_profiles();
    scope.mutable_scope()->set_name("gpusonde");
    scope.mutable_scope()->set_version(std::string(kVersion));
    const auto [time, count] = TypesOf(profile_.type);
    otlp::Profile& times = AddProfile(scope, time, kNanoseconds, facts, TimeOf(samples));
    otlp::Profile& counts = AddProfile(scope, count, "count", facts, TimeOf(samples));
    for (const size_t sample : samples) {
      otlp::Sample& out_time = *times.add_samples();
      otlp::Sample& out_count = *counts.add_samples();
      WriteSample(profile_.samples[sample], out_time);
      out_count = out_time;
      out_time.add_values(profile_.samples[sample].weight_ns);
      out_count.add_values(profile_.samples[sample].count);
    }
  }

  otlp::Profile& AddProfile(otlp::ScopeProfiles& scope, std::string_view type, std::string_view unit,
                            const model::ProcessFacts& facts, int64_t time_ns) {
    otlp::Profile& out = *scope.add_profiles();
    out.mutable_sample_type()->set_type_strindex(String(type));
    out.mutable_sample_type()->set_unit_strindex(String(unit));
    out.mutable_period_type()->set_type_strindex(String(TypesOf(profile_.type).first));
    out.mutable_period_type()->set_unit_strindex(String(kNanoseconds));
    if (profile_.sampling_hz > 0)
      out.set_period(std::llround(static_cast<double>(kNanosPerSecond) / profile_.sampling_hz));
    out.set_time_unix_nano(static_cast<uint64_t>(profile_.start_ns));
    out.set_duration_nano(static_cast<uint64_t>(profile_.end_ns - profile_.start_ns));
    // A receiver that gets the same request twice sees the same id.
    out.set_profile_id(BytesOf(IdHasher("otlp profile")
                                   .Add(facts.host)
                                   .Add(facts.container)
                                   .Add(type)
                                   .Add(static_cast<uint64_t>(profile_.start_ns))
                                   .Add(static_cast<uint64_t>(profile_.end_ns))
                                   .Add(static_cast<uint64_t>(time_ns))
                                   .Finish()));
    for (const model::Profile::Device& device : profile_.devices)
      out.add_attribute_indices(
          TextAttribute(fmt::format("gpusonde.cuda.device.{}", device.ordinal),
                        fmt::format("{}{}", device.name, device.simulated ? " (simulated)" : "")));
    if (profile_.one_second_in > 1)
      out.add_attribute_indices(NumberAttribute("gpusonde.one_second_in", profile_.one_second_in));
    return out;
  }

  void WriteSample(const model::Profile::Sample& sample, otlp::Sample& out) {
    out.set_stack_index(IndexOf(sample.stack));
    for (const int32_t attribute : thread_attributes_[static_cast<size_t>(sample.thread)])
      out.add_attribute_indices(attribute);
    if (sample.device >= 0)
      out.add_attribute_indices(NumberAttribute(
          "gpusonde.cuda.device", profile_.devices[static_cast<size_t>(sample.device)].ordinal));
    if (sample.stream.has_value())
      out.add_attribute_indices(NumberAttribute("gpusonde.cuda.stream", *sample.stream));
    if (sample.graph) out.add_attribute_indices(FlagAttribute("gpusonde.cuda.graph"));
  }

  const model::Profile& profile_;
  const Options& options_;
  otlp::ProfilesData out_;
  otlp::ProfilesDictionary& tables_;  // owned by out_
  std::unordered_map<std::string, int32_t> strings_;
  std::map<std::pair<std::string, std::string>, int32_t> attributes_;  // by key and value as text
  std::vector<std::vector<int32_t>> thread_attributes_;                // of profile_.threads
  int32_t kernel_mapping_ = 0;
  int32_t unknown_function_ = 0;
  int32_t unknown_location_ = 0;
};

Result<std::string> RenderOtlp(const model::Profile& profile, const Options& options) {
  OtlpProfileWriter writer(profile, options);
  std::string bytes;
  if (!writer.Write().SerializeToString(&bytes))
    return Fail(ErrorCode::kUnsupported,
                "otlp: the profile is larger than 2 GiB, which protobuf can't hold; select a shorter time");
  return Gzip(bytes, kGzipNormal);
}

}  // namespace

int64_t CountOtlpProfiles(const model::Profile& profile, const Options& options) {
  std::set<std::pair<std::string, std::string>> resources;
  for (const model::Profile::Thread& thread : profile.threads) {
    const auto facts = options.processes.find(thread.process);
    if (facts == options.processes.end())
      resources.emplace();
    else
      resources.emplace(facts->second.host, facts->second.container);
  }
  return 2 * std::ssize(resources);
}

const Exporter kOtlp = {
    .name = "otlp",
    .meaning = "gzip'd OpenTelemetry profiles (v1development), a request as OTLP/HTTP has it",
    .extension = ".otlp.gz",
    .line_based = false,
    .render = RenderOtlp,
    .process_facts = true};

}  // namespace gpusonde::exporters
