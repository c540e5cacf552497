// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pprof.pb.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/gzip.h"
#include "base/time.h"
#include "base/utf8.h"
#include "exporters/exporter.h"

// pprof's profile.proto, gzip'd: https://github.com/google/pprof/tree/main/proto.
//
// A location's address is its offset in the file, so each file is one mapping that begins at 0. The mappings
// of processes overlap in one address space that way, which pprof allows: it goes by mapping ids. Kernel code
// is in a mapping of perf's name for it. Generated and unknown code has an address and no mapping.
namespace gpusonde::exporters {
namespace {

constexpr std::string_view kKernelMapping = "[kernel.kallsyms]";
constexpr size_t kMaxCommLength = 15;  // what the kernel keeps of a program's name

// pprof's ids are our indices plus one, because 0 means none.
uint64_t IdOf(int32_t index) { return static_cast<uint64_t>(index) + 1; }

class PprofWriter {
 public:
  explicit PprofWriter(const model::Profile& profile) : profile_(profile) { String(""); }

  const pprof::Profile& Write() {
    WriteHead();
    for (const model::Profile::Function& function : profile_.functions) WriteFunction(function);
    for (const model::Profile::Binary& binary : profile_.binaries) AddMapping(binary.path, binary.build_id);
    for (const model::Profile::Location& location : profile_.locations) WriteLocation(location);
    for (const model::Profile::Sample& sample : profile_.samples) WriteSample(sample);
    PutProgramFirst();
    return out_;
  }

 private:
  int64_t String(std::string_view text) {
    const auto [entry, added] = strings_.try_emplace(ToUtf8(text), out_.string_table_size());
    if (added) out_.add_string_table(entry->first);
    return entry->second;
  }

  void SetType(pprof::ValueType& value_type, std::string_view type, std::string_view unit) {
    value_type.set_type(String(type));
    value_type.set_unit(String(unit));
  }

  void WriteHead() {
    // The names of times are those that Pyroscope and Parca use. Work on GPUs includes copies and sets.
    const bool waits = profile_.type == model::ProfileType::kOffCpu;
    const std::string_view time = is_gpu() ? "gpu_kernel_time" : waits ? "off_cpu" : "cpu";
    SetType(*out_.add_sample_type(), is_gpu() ? "gpu_operations" : waits ? "waits" : "samples", "count");
    SetType(*out_.add_sample_type(), time, "nanoseconds");
    SetType(*out_.mutable_period_type(), time, "nanoseconds");
    out_.set_default_sample_type(String(time));
    for (const model::Profile::Device& device : profile_.devices)
      out_.add_comment(String(fmt::format("cuda_device {}: {}{}", device.ordinal, device.name,
                                          device.simulated ? " (simulated)" : "")));
    if (profile_.one_second_in > 1)
      out_.add_comment(
          String(fmt::format("estimated from the samples of one second in {}", profile_.one_second_in)));
    if (profile_.sampling_hz > 0)
      out_.set_period(std::llround(static_cast<double>(kNanosPerSecond) / profile_.sampling_hz));
    out_.set_time_nanos(profile_.start_ns);
    out_.set_duration_nanos(profile_.end_ns - profile_.start_ns);
  }

  bool is_gpu() const { return profile_.type == model::ProfileType::kGpu; }

  void WriteFunction(const model::Profile::Function& function) {
    pprof::Function& out = *out_.add_function();
    out.set_id(static_cast<uint64_t>(out_.function_size()));
    out.set_name(String(function.name));
    out.set_system_name(String(function.system_name));
    out.set_filename(String(function.file));
    out.set_start_line(function.line);
  }

  pprof::Mapping& AddMapping(std::string_view file, std::string_view build_id) {
    pprof::Mapping& out = *out_.add_mapping();
    out.set_id(static_cast<uint64_t>(out_.mapping_size()));
    out.set_filename(String(file));
    out.set_build_id(String(build_id));
    return out;
  }

  // The mapping that a location is in, or null.
  pprof::Mapping* MappingOf(const model::Profile::Location& location) {
    if (location.binary >= 0) return out_.mutable_mapping(location.binary);
    if (location.kind != model::FrameKind::kKernel) return nullptr;
    if (kernel_mapping_ == nullptr) kernel_mapping_ = &AddMapping(kKernelMapping, "");
    return kernel_mapping_;
  }

  void WriteLocation(const model::Profile::Location& location) {
    pprof::Location& out = *out_.add_location();
    out.set_id(static_cast<uint64_t>(out_.location_size()));
    out.set_address(static_cast<uint64_t>(location.address));
    for (const model::Profile::Line& line : location.lines) {
      pprof::Line& out_line = *out.add_line();
      out_line.set_function_id(line.function < 0 ? UnknownFunction() : IdOf(line.function));
      out_line.set_line(line.line);
    }
    pprof::Mapping* mapping = MappingOf(location);
    if (mapping == nullptr) return;
    out.set_mapping_id(mapping->id());
    mapping->set_memory_limit(std::max(mapping->memory_limit(), out.address() + 1));
    NoteWhatIsKnown(location, *mapping);
  }

  void NoteWhatIsKnown(const model::Profile::Location& location, pprof::Mapping& mapping) const {
    for (const model::Profile::Line& line : location.lines) {
      if (line.function < 0) continue;
      mapping.set_has_functions(true);
      if (!profile_.functions[static_cast<size_t>(line.function)].file.empty())
        mapping.set_has_filenames(true);
      if (line.line > 0) mapping.set_has_line_numbers(true);
    }
    if (location.lines.size() > 1) mapping.set_has_inline_frames(true);
  }

  uint64_t UnknownFunction() {
    if (unknown_function_ == 0) {
      WriteFunction({.name = "[unknown]", .system_name = "", .file = ""});
      unknown_function_ = static_cast<uint64_t>(out_.function_size());
    }
    return unknown_function_;
  }

  // For a frame without a known address.
  uint64_t UnknownLocation() {
    if (unknown_location_ == 0) {
      pprof::Location& out = *out_.add_location();
      unknown_location_ = static_cast<uint64_t>(out_.location_size());
      out.set_id(unknown_location_);
      out.add_line()->set_function_id(UnknownFunction());
    }
    return unknown_location_;
  }

  void WriteSample(const model::Profile::Sample& sample) {
    pprof::Sample& out = *out_.add_sample();
    for (const int32_t location : profile_.stacks[static_cast<size_t>(sample.stack)])
      out.add_location_id(location < 0 ? UnknownLocation() : IdOf(location));
    out.add_value(sample.count);
    out.add_value(sample.weight_ns);
    const model::Profile::Thread& thread = profile_.threads[static_cast<size_t>(sample.thread)];
    AddLabel(out, "process").set_str(String(thread.process_name));
    AddLabel(out, "pid").set_num(thread.pid);
    AddLabel(out, "thread").set_str(String(thread.name));
    AddLabel(out, "tid").set_num(thread.tid);
    if (sample.device >= 0)
      AddLabel(out, "cuda_device").set_num(profile_.devices[static_cast<size_t>(sample.device)].ordinal);
    if (sample.stream.has_value()) AddLabel(out, "cuda_stream").set_num(*sample.stream);
    if (sample.graph) AddLabel(out, "cuda_graph").set_str(String("true"));
  }

  pprof::Label& AddLabel(pprof::Sample& sample, std::string_view key) {
    pprof::Label& label = *sample.add_label();
    label.set_key(String(key));
    return label;
  }

  // pprof names a profile after its first mapping: make it the program that used most CPU time.
  void PutProgramFirst() {
    std::map<std::string, int64_t> cpu_ns;
    for (const model::Profile::Sample& sample : profile_.samples)
      cpu_ns[profile_.threads[static_cast<size_t>(sample.thread)].process_name] += sample.weight_ns;
    const auto program = std::ranges::max_element(cpu_ns, {}, &std::pair<const std::string, int64_t>::second);
    if (program == cpu_ns.end()) return;
    const auto is_program = [&program](const model::Profile::Binary& binary) {
      return binary.name.substr(0, kMaxCommLength) == program->first;
    };
    const auto found = std::ranges::find_if(profile_.binaries, is_program);
    if (found == profile_.binaries.end()) return;
    out_.mutable_mapping()->SwapElements(0, static_cast<int>(found - profile_.binaries.begin()));
  }

  const model::Profile& profile_;
  pprof::Profile out_;
  std::unordered_map<std::string, int64_t> strings_;
  pprof::Mapping* kernel_mapping_ = nullptr;  // owned by out_
  uint64_t unknown_function_ = 0;
  uint64_t unknown_location_ = 0;
};

Result<std::string> RenderPprof(const model::Profile& profile, const Options& /*options*/) {
  PprofWriter writer(profile);
  std::string bytes;
  if (!writer.Write().SerializeToString(&bytes))
    return Fail(ErrorCode::kUnsupported,
                "pprof: the profile is larger than 2 GiB, which protobuf can't hold; select a shorter time");
  return Gzip(bytes, kGzipNormal);
}

}  // namespace

const Exporter kPprof = {.name = "pprof",
                         .meaning = "gzip'd profile.proto, for pprof and what reads its files",
                         .extension = ".pb.gz",
                         .line_based = false,
                         .render = RenderPprof};

}  // namespace gpusonde::exporters
