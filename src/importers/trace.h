// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/event.h"

namespace gpusonde::importers {

// The supported formats, each in its own folder.
enum class TraceFormat : uint8_t { kNsysSqlite, kNvprofSqlite, kKinetoJson, kNcuCsv, kSonde };

// As in the JSON: "nsys-sqlite".
std::string_view Name(TraceFormat format);

// What a multiprocessor of an NVIDIA GPU has; 0 where the trace doesn't say.
struct Multiprocessor {
  int64_t threads = 0;
  int64_t blocks = 0;
  int64_t registers = 0;
  int64_t shared_bytes = 0;
  int64_t reserved_shared_bytes = 0;  // of each block

  // Fills in what depends on the compute capability (CUDA C++ Programming Guide, "Technical Specifications
  // per Compute Capability"): the reserved memory, and the blocks if they are unknown and of a known
  // capability.
  void SetCapability(int64_t major, int64_t minor);
};

// A GPU as a trace describes it.
struct TracedDevice {
  int64_t pid = 0;  // of the process that numbers it so; 0: of all
  int32_t ordinal = 0;
  std::string name;
  std::string uuid;  // as the driver reports it; "" if unknown
  std::string pci_bus;
  std::optional<int64_t> sm_count;
  std::optional<int64_t> memory_bytes;
  Multiprocessor multiprocessor;
};

// The beginning of a trace's clock, in ns since the Unix epoch, as the trace says it: 0, as if it didn't,
// where times couldn't be added to it.
constexpr int64_t EpochOffsetOf(int64_t begins_ns) {
  return begins_ns >= -kMaxTimeNs && begins_ns <= kMaxTimeNs ? begins_ns : 0;
}

// Metadata of a trace, complete once all its shards have been returned.
struct TraceInfo {
  TraceFormat format = TraceFormat::kNsysSqlite;
  int64_t epoch_offset_ns = 0;      // added to the file's times, they are ns since the Unix epoch
  std::optional<int64_t> rank;      // of a distributed job
  bool separate_gpu_clock = false;  // times of GPU events are by another clock than those of calls
  bool truncated = false;           // the file ends in the middle; the part before is read
  int64_t sampled_calls = 0;        // of the calls, a sample: the program made others that aren't recorded
  // Processes that may have launched the GPU work, if it doesn't say which of several did; else 0.
  int64_t possible_launchers = 0;
  std::vector<TracedDevice> devices;
};

// A part of a trace that one thread reads at a time. Shards are about equally large and depend only on the
// trace, not on threads or ranks.
struct Shard {
  uint64_t index = 0;          // 0, 1, … in file order
  uint64_t source = 0;         // the importer's own: which table
  uint64_t first = 0;          // the importer's own: where in it
  std::string text;            // the importer's own: bytes that were read already
  std::vector<uint32_t> ends;  // the importer's own: where things in the text end
};

// Reads shards for one thread; holds that thread's file handles and buffers.
class ShardReader {
 public:
  virtual ~ShardReader() = default;
  // Sends every event of the shard to the sink that the reader was made for. Errors: kCorrupt with file and
  // offset or page; kIo.
  virtual Status Read(const Shard& shard) = 0;
};

struct OpenOptions {
  bool partial = false;       // read the readable part of a damaged file instead of failing
  bool kernels_only = false;  // other events may be left out if that saves time
  bool detail = false;        // read all that a recording holds; sinks get EventSink::Detailed
  bool gpu_only = false;      // in detail: what threads did, and names of processes and threads, are left out
  uint64_t temp_limit = std::numeric_limits<uint64_t>::max();  // bytes of a copy of a database with a log
};

// One open trace.
class Trace {
 public:
  virtual ~Trace() = default;
  virtual const TraceInfo& info() const = 0;
  // Returns the next shard, or false when there is none left. Not thread-safe: callers hold a lock. Errors:
  // kCorrupt with the offset, unless `partial`.
  virtual Result<bool> Next(Shard& shard) = 0;
  // A reader for one thread. `sink` and the Trace must outlive it. Thread-safe.
  virtual Result<std::unique_ptr<ShardReader>> MakeReader(EventSink& sink) const = 0;
};

// Opens a trace of any format; its content decides the format, never its name. Errors, each naming the file:
// kNotFound, kPermissionDenied; kInvalidArgument for a folder, pipe or device; kUnsupported for other files,
// saying what they seem to be; kCorrupt.
Result<std::unique_ptr<Trace>> OpenTrace(const std::string& path, const OpenOptions& options);

}  // namespace gpusonde::importers
