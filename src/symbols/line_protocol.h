// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/fd_passing.h"
#include "base/result.h"
#include "symbols/dwarf_file.h"

// The messages between a profiler and the process that reads debug information for it, on a SOCK_SEQPACKET
// pair.
namespace gpusonde::symbols {

inline constexpr size_t kMaxOffsetsPerRequest = 1024;

struct LineRequest {
  uint32_t file = 0;              // the requester's number for it
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

// Errors: kUnavailable if the socket has no room; kIo.
Status SendRequest(int socket, const LineRequest& request, Wait wait);
Status SendAnswer(int socket, const LineAnswer& answer);

// Nullopt if the other side has closed the socket. Errors: kCorrupt for a malformed message; kUnavailable if
// there is none; kIo.
Result<std::optional<LineRequest>> ReceiveRequest(int socket);
Result<std::optional<LineAnswer>> ReceiveAnswer(int socket, Wait wait);

}  // namespace gpusonde::symbols
