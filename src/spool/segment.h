// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"

// One file of a spool: a header and frames, little-endian. Files are named by their first sequence number,
// and are renamed to it only when the header is on disk, so that a named file always has a complete header.
//
//   header: "gpusonde", version u32, zero u32, spool id 16, first sequence i64, XXH3-64 of all before
//   frame:  XXH3-64 of all after it (seeded by the spool id), sequence i64, synced i64, length u32, payload
//
// `synced` is the last sequence that was known to be on disk when the frame was written. It distinguishes a
// torn end from damage: a broken frame is a torn end unless a later frame shows that it had been synced.
namespace gpusonde::spool {

inline constexpr size_t kSegmentHeaderBytes = 48;
inline constexpr size_t kFrameHeaderBytes = 28;

// Bound on the payload of a frame: zstd's worst case for the largest batch.
inline constexpr uint32_t kMaxPayloadBytes = (uint32_t{128} << 20) + (uint32_t{1} << 20);

struct SegmentName {
  std::string path;
  int64_t first_sequence = 0;
};

// The segments of a folder, sorted by first sequence. Errors: kNotFound, kPermissionDenied, kIo.
Result<std::vector<SegmentName>> ListSegments(const std::string& folder);

// The segment of a folder that begins with this sequence number, whether it exists or not.
SegmentName NameSegment(const std::string& folder, int64_t first_sequence);

// Creates an empty segment in the folder, durable on return, and opens it for writing at its end.
Result<Fd> CreateSegment(const std::string& folder, Id128 spool, int64_t first_sequence);

// Encodes `payload` as a frame, ready to be written.
std::vector<std::byte> MakeFrame(Id128 spool, int64_t sequence, int64_t synced,
                                 std::span<const std::byte> payload);

// Reads one segment from its begin. Not thread-safe.
class SegmentReader {
 public:
  // Errors: kCorrupt for a header that is not one, or whose first sequence isn't its name's; kTooNew.
  static Result<SegmentReader> Open(const SegmentName& name);

  struct Frame {
    int64_t sequence = 0;
    std::vector<std::byte> payload;
  };
  // The next frame; nullopt after the last whole frame. Errors: kCorrupt with file and offset for a broken
  // frame that had been synced; kIo.
  Result<std::optional<Frame>> Next();

  Id128 spool() const { return spool_; }
  // Offset of the next frame: after Next() returned nullopt, the end of the whole frames.
  int64_t offset() const { return offset_; }
  // Bytes of the file from offset() on.
  Result<int64_t> RestBytes() const;

 private:
  SegmentReader(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Result<std::optional<Frame>> ReadFrame();
  Result<bool> RestWasSynced() const;

  Fd fd_;
  std::string path_;
  Id128 spool_;
  int64_t next_sequence_ = 0;
  int64_t offset_ = 0;
};

}  // namespace gpusonde::spool
