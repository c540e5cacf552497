// SPDX-License-Identifier: Apache-2.0
// sample_recording FILE [--gpu [--sampled | --restarted]]: writes a recording of exporters::SampleProfile(),
// for tests that need a recording without running a program. Its 60 samples are spread evenly over two
// seconds, in the order of the profile: --to 1 selects the first 30. With --gpu a device works for process
// 411: in the first half second, with a launch, for a quarter of a second after 1 s, and for a tenth
// after 1.5 s; with --sampled the launch is one of a sample; with --restarted the last kernel is of a second
// session, whose ids begin anew.
#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "base/time.h"
#include "exporters/sample_profile.h"
#include "model/tables/api_calls.h"
#include "model/tables/binaries.h"
#include "model/tables/devices.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernels.h"
#include "model/tables/locations.h"
#include "model/tables/memcpys.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/threads.h"
#include "spool/spool.h"
#include "store/recordings/recording.h"

namespace gpusonde {
namespace {

using model::BatchBuilder;
using model::Profile;

Id128 IdOf(std::string_view kind, size_t index) { return IdHasher(kind).Add(uint64_t{index}).Finish(); }
Id128 IdOf(std::string_view kind, int32_t index) { return IdOf(kind, static_cast<size_t>(index)); }

template <class Id>
std::optional<Id128> OptionalId(std::string_view kind, Id index) {
  return index < 0 ? std::nullopt : std::optional(IdOf(kind, index));
}

model::Batch Sources(const Profile& profile) {
  BatchBuilder rows(model::kSources);
  rows.Append({.source = IdOf("source", 0),
               .kind = model::SourceKind::kRecord,
               .host = "sample",
               .boot_id = "",
               .kernel = "",
               .version = "",
               .cpus = 2,
               .sampling_hz = profile.sampling_hz,
               .command = "/opt/train",
               .started_ns = profile.start_ns,
               .ended_ns = profile.end_ns});
  return rows.Take();
}

model::Batch Processes(const Profile& profile) {
  BatchBuilder rows(model::kProcesses);
  for (const Profile::Thread& thread : profile.threads) {
    if (thread.pid != thread.tid) continue;
    rows.Append({.process = thread.process,
                 .source = IdOf("source", 0),
                 .pid = thread.pid,
                 .name = thread.process_name,
                 .command = "/opt/train",
                 .executable = "/opt/train",
                 .cgroup = "",
                 .started_ns = profile.start_ns});
  }
  return rows.Take();
}

model::Batch Threads(const Profile& profile) {
  BatchBuilder rows(model::kThreads);
  for (const Profile::Thread& thread : profile.threads)
    rows.Append({.process = thread.process,
                 .tid = thread.tid,
                 .name = thread.name,
                 .started_ns = std::nullopt,
                 .exited_ns = std::nullopt});
  return rows.Take();
}

model::Batch Binaries(const Profile& profile) {
  BatchBuilder rows(model::kBinaries);
  for (size_t i = 0; i < profile.binaries.size(); ++i)
    rows.Append({.binary = IdOf("binary", i),
                 .build_id = profile.binaries[i].build_id,
                 .path = profile.binaries[i].path,
                 .name = profile.binaries[i].name});
  return rows.Take();
}

model::Batch Functions(const Profile& profile) {
  BatchBuilder rows(model::kFunctions);
  for (size_t i = 0; i < profile.functions.size(); ++i) {
    const Profile::Function& function = profile.functions[i];
    const bool known = !function.file.empty();
    rows.Append({.function = IdOf("function", i),
                 .name = function.name,
                 .system_name = function.system_name,
                 .file = known ? std::optional(function.file) : std::nullopt,
                 .line = known ? std::optional(function.line) : std::nullopt});
  }
  return rows.Take();
}

model::Batch Locations(const Profile& profile) {
  BatchBuilder rows(model::kLocations);
  for (size_t i = 0; i < profile.locations.size(); ++i) {
    const Profile::Location& location = profile.locations[i];
    model::Location row{.location = IdOf("location", i),
                        .kind = location.kind,
                        .binary = OptionalId("binary", location.binary),
                        .address = location.address,
                        .functions = {},
                        .lines = {}};
    for (const Profile::Line& line : location.lines) {
      row.functions.push_back(IdOf("function", line.function));
      row.lines.push_back(line.line);
    }
    rows.Append(row);
  }
  return rows.Take();
}

model::Batch Stacks(const Profile& profile) {
  BatchBuilder rows(model::kStacks);
  for (size_t i = 0; i < profile.stacks.size(); ++i) {
    model::Stack row{.stack = IdOf("stack", i), .locations = {}};
    for (const int32_t location : profile.stacks[i]) row.locations.push_back(IdOf("location", location));
    rows.Append(row);
  }
  return rows.Take();
}

model::Batch Samples(const Profile& profile) {
  int64_t total = 0;
  for (const Profile::Sample& sample : profile.samples) total += sample.count;
  int64_t sampled = 0;
  BatchBuilder rows(model::kSamples);
  for (const Profile::Sample& sample : profile.samples) {
    const Profile::Thread& thread = profile.threads[static_cast<size_t>(sample.thread)];
    for (int64_t i = 0; i < sample.count; ++i)
      rows.Append({.time_ns = profile.start_ns + (profile.end_ns - profile.start_ns) * sampled++ / total,
                   .process = thread.process,
                   .tid = thread.tid,
                   .stack = IdOf("stack", sample.stack),
                   .weight_ns = sample.weight_ns / sample.count});
  }
  return rows.Take();
}

Id128 Device() { return IdOf("device", 0); }

model::Batch Devices(const Profile&) {
  BatchBuilder rows(model::kDevices);
  rows.Append({.device = Device(),
               .source = IdOf("source", 0),
               .ordinal = 0,
               .uuid = "GPU-0",
               .name = "Simulated GPU",
               .simulated = true});
  return rows.Take();
}

model::Batch Sessions(const Profile& profile) {
  BatchBuilder rows(model::kGpuSessions);
  rows.Append({.process = profile.threads.front().process,
               .session = 1,
               .start_ns = profile.start_ns,
               .end_ns = profile.end_ns,
               .end_reason = "exit"});
  return rows.Take();
}

model::Batch KernelsOf(const Profile& profile, bool restarted) {
  BatchBuilder rows(model::kKernels);
  const auto add = [&](int32_t session, int64_t correlation, int64_t after_ms, int64_t ms,
                       const std::string& name) {
    const int64_t start_ns = profile.start_ns + after_ms * kNanosPerMilli;
    rows.Append({.process = profile.threads.front().process,
                 .device = Device(),
                 .session = session,
                 .correlation = correlation,
                 .stream = 7,
                 .start_ns = start_ns,
                 .end_ns = start_ns + ms * kNanosPerMilli,
                 .name = name});
  };
  add(1, 1, 0, 500, "_Z4gemmi");
  add(restarted ? 2 : 1, restarted ? 1 : 3, 1500, 100, "relu");
  return rows.Take();
}
model::Batch Kernels(const Profile& profile) { return KernelsOf(profile, false); }
model::Batch RestartedKernels(const Profile& profile) { return KernelsOf(profile, true); }

model::Batch Memcpys(const Profile& profile) {
  BatchBuilder rows(model::kMemcpys);
  rows.Append({.process = profile.threads.front().process,
               .device = Device(),
               .session = 1,
               .correlation = 2,
               .stream = 13,
               .start_ns = profile.start_ns + kNanosPerSecond,
               .end_ns = profile.start_ns + kNanosPerSecond + 250 * kNanosPerMilli,
               .bytes = 4096,
               .kind = "htod"});
  return rows.Take();
}

model::Batch CallsOf(const Profile& profile, double probability) {
  BatchBuilder rows(model::kApiCalls);
  rows.Append({.process = profile.threads.front().process,
               .tid = 411,
               .session = 1,
               .correlation = 1,
               .start_ns = profile.start_ns,
               .end_ns = profile.start_ns,
               .domain = "cuda_runtime",
               .name = "cudaLaunchKernel",
               .stack = IdOf("stack", 3),
               .probability = probability});
  return rows.Take();
}
model::Batch Calls(const Profile& profile) { return CallsOf(profile, 1); }
model::Batch SampledCalls(const Profile& profile) { return CallsOf(profile, 0.25); }

// `without`: tables whose rows are omitted, as if they had been lost.
Status MakeRecording(const std::string& path, bool gpu, bool sampled, bool restarted,
                     std::string_view without) {
  const Profile profile = exporters::SampleProfile();
  const std::string folder = path + ".spool";
  {
    ASSIGN_OR_RETURN(spool::Writer writer, spool::Writer::Open(folder));
    std::vector<model::Batch (*)(const Profile&)> tables = {Sources,   Processes, Threads, Binaries,
                                                            Functions, Locations, Stacks,  Samples};
    if (gpu)
      tables.insert(tables.end(), {Devices, Sessions, restarted ? RestartedKernels : Kernels, Memcpys,
                                   sampled ? SampledCalls : Calls});
    for (const auto& rows : tables)
      if (const model::Batch batch = rows(profile); without.find(batch.table) == std::string_view::npos)
        TRY(writer.Append(batch));
    TRY(writer.Sync());
  }
  TRY(store::WriteRecording(folder, path));
  std::filesystem::remove_all(folder);
  return {};
}

}  // namespace
}  // namespace gpusonde

int main(int argc, char** argv) {
  const bool gpu = argc >= 3 && std::string_view(argv[2]) == "--gpu";
  const bool sampled = argc == 4 && gpu && std::string_view(argv[3]) == "--sampled";
  const bool restarted = argc == 4 && gpu && std::string_view(argv[3]) == "--restarted";
  const bool lossy = argc == 5 && gpu && std::string_view(argv[3]) == "--without";
  if (argc != 2 && !(argc == 3 && gpu) && !sampled && !restarted && !lossy) {
    fmt::print(stderr,
               "usage: sample_recording FILE [--gpu [--sampled | --restarted | --without TABLE,…]]\n");
    return 2;
  }
  const gpusonde::Status made =
      gpusonde::MakeRecording(argv[1], gpu, sampled, restarted, lossy ? argv[4] : "");
  if (made.has_value()) return 0;
  fmt::print(stderr, "sample_recording: {}\n", made.error().message);
  return 1;
}
