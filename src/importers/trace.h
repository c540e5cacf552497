// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/event.h"

namespace gpusonde::importers {

// The formats that are read, each in its own folder.
enum class TraceFormat : uint8_t { kNsysSqlite, kNvprofSqlite, kKinetoJson, kNcuCsv, kSonde };

// As in the JSON: "nsys-sqlite".
std::string_view Name(TraceFormat format);

// What a trace says of itself, complete once all its shards have been handed out.
struct TraceInfo {
  TraceFormat format = TraceFormat::kNsysSqlite;
  int64_t epoch_offset_ns = 0;  // added to the file's times, they are ns since the Unix epoch
  std::optional<int64_t> rank;  // of a distributed job
  bool truncated = false;       // the file ends in the middle; what came before it is read
};

// A part of a trace that one thread reads at a time. Parts of a trace are about equally large, and the same
// whoever asks for them: neither threads nor ranks change where a shard begins.
struct Shard {
  uint64_t index = 0;          // 0, 1, … in the order of the file
  uint64_t source = 0;         // the importer's own: which table
  uint64_t first = 0;          // the importer's own: where in it
  std::string text;            // the importer's own: bytes that were read already
  std::vector<uint32_t> ends;  // the importer's own: where things in the text end
};

// Reads shards for one thread; holds that thread's file handles and buffers.
class ShardReader {
 public:
  virtual ~ShardReader() = default;
  // Every event of the shard goes to the sink that the reader was made for. Errors: kCorrupt with file and
  // offset or page; kIo.
  virtual Status Read(const Shard& shard) = 0;
};

struct OpenOptions {
  bool partial = false;       // of a damaged file, take what is there; else that is an error
  bool kernels_only = false;  // what isn't a kernel may be left out, where that saves reading it
};

// One open trace.
class Trace {
 public:
  virtual ~Trace() = default;
  virtual const TraceInfo& info() const = 0;
  // Hands out the next shard, or false when there is none left. Not thread-safe: callers hold a lock.
  // Errors: kCorrupt with the offset, unless `partial`.
  virtual Result<bool> Next(Shard& shard) = 0;
  // A reader for one thread. `sink` and the Trace must outlive it. Thread-safe.
  virtual Result<std::unique_ptr<ShardReader>> MakeReader(EventSink& sink) const = 0;
};

// Opens a trace of any format; what it is follows from its content, never from its name. Errors, each naming
// the file: kNotFound, kPermissionDenied; kInvalidArgument for a folder, pipe or device; kUnsupported for
// what is no trace, and says what it seems to be; kCorrupt.
Result<std::unique_ptr<Trace>> OpenTrace(const std::string& path, const OpenOptions& options);

}  // namespace gpusonde::importers
