// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include <iterator>
#include <span>

#include "base/fd.h"
#include "writers.h"

namespace gpusonde::synthetic {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;
constexpr int64_t kBaseNs = 1'700'000'000'000'000'000;

// ns as µs with three decimals, as Kineto has them.
std::string Micros(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

class KinetoFile {
 public:
  static Result<KinetoFile> Create(const std::string& path, int rank, const Plan& plan) {
    KinetoFile file;
    ASSIGN_OR_RETURN(file.fd_, Open(path, O_WRONLY | O_CREAT | O_TRUNC));
    file.out_ = fmt::format(
        R"({{
  "schemaVersion": 1,
  "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}}},
  "baseTimeNanoseconds": {},
  "traceEvents": [
  {{
    "name": "process_name", "ph": "M", "ts": 0, "pid": 100, "tid": 0, "args": {{ "name": "python" }}
  }})",
        rank, plan.ranks, kBaseNs + rank * plan.clock_offset_ns);
    file.rank_ = rank;
    return file;
  }

  Status Add(const Step& step, int operators) {
    for (const Call& call : step.calls) AddCall(call, operators);
    for (const Event& event : step.events) AddEvent(event);
    Put(R"(,
  {{
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep", "pid": 100, "tid": 100, "ts": {}, "dur": {}
  }})",
        Micros(step.begin_ns), Micros(step.end_ns - step.begin_ns));
    return out_.size() < kFlushBytes ? Status() : Flush();
  }
  Status Finish() {
    out_ += "\n  ]\n}\n";
    return Flush();
  }

 private:
  template <class... Args>
  void Put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void AddCall(const Call& call, int operators) {
    for (int i = 0; i < operators; ++i)
      Put(R"(,
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 100, "tid": 100, "ts": {}, "dur": {},
    "args": {{
      "External id": {},"Record function id": 0, "Ev Idx": {}, "Input Dims": [[32, 1024], [1024, 1024], [1024]], "Input type": ["float", "float", "float"]
    }}
  }})",
          Micros(call.start_ns - 1'000), Micros(call.end_ns - call.start_ns + 1'200), call.correlation,
          call.correlation);
    Put(R"(,
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "{}", "pid": 100, "tid": 100, "ts": {}, "dur": {},
    "args": {{
      "External id": {}, "cbid": 211, "correlation": {}
    }}
  }},
  {{
    "ph": "s", "id": {}, "pid": 100, "tid": 100, "ts": {}, "cat": "ac2g", "name": "ac2g"
  }})",
        call.is_copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", Micros(call.start_ns),
        Micros(call.end_ns - call.start_ns), call.correlation, call.correlation, call.correlation,
        Micros(call.start_ns));
  }

  void AddEvent(const Event& event) {
    if (event.kernel < 0)
      return Put(R"json(,
  {{
    "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": {0}, "tid": {1}, "ts": {2}, "dur": {3},
    "args": {{
      "External id": {4}, "device": {0}, "context": 1, "stream": {1}, "correlation": {4}, "bytes": {5}, "memory bandwidth (GB/s)": 17.4
    }}
  }})json",
                 rank_, event.stream, Micros(event.start_ns), Micros(event.end_ns - event.start_ns),
                 event.correlation, event.bytes);
    Put(R"(,
  {{
    "ph": "X", "cat": "kernel", "name": "{6}", "pid": {0}, "tid": {1}, "ts": {2}, "dur": {3},
    "args": {{
      "External id": {4}, "queued": 0, "device": {0}, "context": 1, "stream": {1}, "correlation": {4}, "registers per thread": 64, "shared memory": 4096, "blocks per SM": 1.896296, "warps per SM": 15.17037, "grid": [{5}, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 47
    }}
  }},
  {{
    "ph": "f", "id": {4}, "pid": {0}, "tid": {1}, "ts": {2}, "cat": "ac2g", "name": "ac2g", "bp": "e"
  }})",
        rank_, event.stream, Micros(event.start_ns), Micros(event.end_ns - event.start_ns), event.correlation,
        event.grid, KernelNames()[static_cast<size_t>(event.kernel)]);
  }

  Status Flush() {
    TRY(WriteAll(fd_.get(), std::as_bytes(std::span(out_))));
    out_.clear();
    return {};
  }

  Fd fd_;
  std::string out_;
  int rank_ = 0;
};

}  // namespace

Status WriteKineto(const Plan& plan, const std::string& path, int operators) {
  std::vector<KinetoFile> files;
  const size_t place = path.find("{}");
  if (place == std::string::npos && plan.ranks > 1)
    return Fail(ErrorCode::kInvalidArgument,
                path + ": several ranks are several files; write {} for their number");
  for (int i = 0; i < plan.ranks; ++i) {
    std::string name = path;
    if (place != std::string::npos) name.replace(place, 2, std::to_string(i));
    ASSIGN_OR_RETURN(KinetoFile file, KinetoFile::Create(name, i, plan));
    files.push_back(std::move(file));
  }
  Workload workload(plan);
  for (int64_t i = 0; i < workload.steps(); ++i) {
    const std::vector<Step> steps = workload.Next();
    for (size_t rank = 0; rank < files.size(); ++rank) TRY(files[rank].Add(steps[rank], operators));
  }
  for (KinetoFile& file : files) TRY(file.Finish());
  return {};
}

}  // namespace gpusonde::synthetic
