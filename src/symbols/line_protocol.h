// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "symbols/dwarf_file.h"

// What a profiler and the process that reads debug information for it say to each other: messages on a
// SOCK_SEQPACKET pair.
namespace gpusonde::symbols {

inline constexpr size_t kMaxOffsetsPerRequest = 1024;

struct LineRequest {
  uint32_t file = 0;              // the asker's number for it
  int32_t pid = 0;                // a process that maps it: debug files are looked for in its root, too
  std::string path;               // in that root
  std::vector<uint64_t> offsets;  // at most kMaxOffsetsPerRequest
  Fd fd;
};

struct LineAnswer {
  enum class Kind : uint8_t { kFrames, kNoDebugInfo, kUnreadable };
  uint32_t file = 0;
  Kind kind = Kind::kFrames;  // of the others there is one for the whole request
  uint64_t offset = 0;
  std::vector<SourceFrame> frames;  // innermost first; as much as fits a message
};

// Errors: kIo. Sending waits for room, unless `wait` is false: then kUnavailable when there is none.
Status SendRequest(int socket, const LineRequest& request, bool wait);
Status SendAnswer(int socket, const LineAnswer& answer);

// Nothing when the other side has gone. Errors: kCorrupt for what is no such message; kUnavailable when there
// is none and `wait` is false.
Result<std::optional<LineRequest>> ReceiveRequest(int socket);
Result<std::optional<LineAnswer>> ReceiveAnswer(int socket, bool wait);

}  // namespace gpusonde::symbols
