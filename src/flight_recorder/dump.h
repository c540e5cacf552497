// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "flight_recorder/shared_text.h"

namespace gpusonde::flight_recorder {

struct Frame {
  SharedText function, file;
  int64_t line = 0;
};

// How far an operation came: called by the program, begun by the GPU, ended. Without timing of collectives
// (TORCH_NCCL_ENABLE_TIMING), PyTorch doesn't know of *started*.
enum class State : uint8_t { kScheduled, kStarted, kCompleted };

// A collective, or a send or receive, as one rank called it.
struct Entry {
  int64_t record = 0;    // 0, 1, … in the order of the calls
  SharedText group;      // the name of its process group
  SharedText operation;  // "all_reduce", "send 0->1", "coalesced"
  bool point_to_point = false;
  int64_t sequence = 0;  // within its group, separately for collectives and for point-to-point
  State state = State::kScheduled;
  std::optional<int64_t> called_ns;   // since the Unix epoch, by the clock of the rank's host
  std::optional<double> duration_ms;  // on the GPU
  std::optional<int64_t> timeout_ms;
  std::vector<std::vector<int64_t>> input_sizes;
  std::vector<SharedText> input_types;  // "Float"
  // Of the Python call, the innermost first; read of calls that have not completed, and of the last one.
  std::vector<Frame> frames;
};

struct Group {
  SharedText name, description;
  std::vector<int64_t> ranks;  // of the job, ascending
};

// What PyTorch's Flight Recorder of one rank held: its last operations, in the order of the calls.
struct Dump {
  std::string path;
  int64_t rank = 0;
  std::string version;        // of the format: "2.10"
  std::vector<Group> groups;  // that the rank belongs to, as far as it used them
  std::vector<Entry> entries;
  int64_t unreadable = 0;  // entries that lack a name, a sequence number or a state
};

// Whether the file begins like a dump of the Flight Recorder, as a pickle or as JSON.
bool IsDump(const std::string& path);

// Reads a file that PyTorch's Flight Recorder wrote (TORCH_FR_DUMP_TEMP_FILE or
// TORCH_NCCL_DEBUG_INFO_TEMP_FILE followed by the rank; torch._C._distributed_c10d._dump_nccl_trace and
// …_json). The rank is the number at the end of the file's name, as the contents don't have it. Errors:
// kInvalidArgument without such a number; kUnsupported for files over 256 MiB and for versions of the format
// before 2.2; those of ReadPickle and ReadJson.
// Source: PyTorch, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp, versions 2.2 to 2.10.
Result<Dump> ReadDump(const std::string& path);

// Longer than a path, and than the names of nearly all functions of C++.
inline constexpr size_t kMaxText = 4096;

// Reads the contents of such a file; `path` is for messages. Texts are cut to kMaxText bytes. A few bytes of
// a pickle can refer to the same frames, sizes or entries any number of times: each time, what is read counts
// anew towards kMaxValues.
Result<Dump> ParseDump(std::string_view bytes, const std::string& path, int64_t rank);

}  // namespace gpusonde::flight_recorder
