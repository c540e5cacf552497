// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"
#include "model/batch.h"

// The log on disk: a folder of segment files, each a header and frames of zstd-compressed batches with a
// checksum. It is the write-ahead log of `record`, `up` and `agent`: what Sync has returned for survives kill
// -9 and power cuts. Frames are numbered from 1 without gaps over all segments.
namespace gpusonde::spool {

// Appends to a spool. One per folder at a time (held by flock; a second writer gets kUnavailable). Not
// thread-safe.
class Writer {
 public:
  struct Options {
    int64_t segment_bytes = int64_t{64} << 20;  // a new segment is begun past this size
    int compression_level = 1;                  // zstd
  };

  // Creates the folder (mode 0700: stacks and command lines are private) or opens it to go on after its last
  // whole frame; a torn frame at the end is cut off. Errors: kUnavailable when another writer holds it;
  // kCorrupt when a frame that was once synced is damaged; kTooNew; kNotFound without the folder's parent;
  // kPermissionDenied, kOutOfSpace, kIo.
  static Result<Writer> Open(const std::string& folder, Options options);
  static Result<Writer> Open(const std::string& folder) { return Open(folder, Options{}); }

  // Writes one frame. Returns its sequence number. After an error (kOutOfSpace, kIo) the frame is not in the
  // spool, the file ends with the last whole frame again, and later frames may be tried. Beginning a new
  // segment syncs the old one, which can fail as Sync does.
  Result<int64_t> Append(const model::Batch& batch);

  // fsync: everything appended so far survives. After an error (kIo, kOutOfSpace) nobody knows what of the
  // frames appended since the last successful Sync is on disk, and a second fsync would not tell (the kernel
  // reports a failed write-back once). They are taken back: last_sequence() is that of the last synced frame
  // again, their numbers are used anew, and later frames go to a new segment.
  Status Sync();

  // Appends batches and syncs them. After a batch that failed the rest is lost, too: batches come with names
  // before what refers to them, and a sample without its stack is worth less than a count of lost rows.
  struct Stored {
    std::vector<int64_t> sequences;  // of each batch; 0 where it was lost
    int64_t lost_rows = 0;
    std::optional<Error> failure;  // the first one, when anything was lost
  };
  Stored Store(std::span<const model::Batch> batches);

  // Deletes segments whose every frame is at or below `sequence` (never the one being written).
  Status DropThrough(int64_t sequence);

  // Identifies this spool in the `batches` table; random, made with the folder.
  Id128 id() const;
  int64_t last_sequence() const;

  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct ReadSummary {
  Id128 id;
  int64_t frames = 0;         // visited
  int64_t last_sequence = 0;  // of the last whole frame; 0 when there never was one
  int64_t torn_bytes = 0;     // bytes after the last whole frame, left by a crash
};

// Calls visit(sequence, batch) for every whole frame with a sequence above `after`, in order; stops at the
// first error that visit returns. A torn end of the last segment is reported, not an error; damage before
// that is kCorrupt with file and offset. Reading while a Writer appends is fine: it sees what was whole.
// Errors: kNotFound where there is no spool; kTooNew, kPermissionDenied, kIo; those of visit.
Result<ReadSummary> Read(const std::string& folder, int64_t after,
                         const std::function<Status(int64_t sequence, const model::Batch&)>& visit);

// Whether the folder's segments hold any whole frame. Errors as of Read; no segments are no error.
Result<bool> HasFrames(const std::string& folder);

}  // namespace gpusonde::spool
