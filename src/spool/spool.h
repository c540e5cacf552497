// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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

// The spool is the write-ahead log of `record`, `up` and `agent`: a folder of segment files, each a header
// and frames of zstd-compressed batches with a checksum. Frames that were synced survive kill -9 and power
// cuts. Frames are numbered from 1 without gaps over all segments.
namespace gpusonde::spool {

// Appends to a spool. One per folder at a time (held by flock; a second writer gets kUnavailable). Not
// thread-safe.
class Writer {
 public:
  struct Options {
    int64_t segment_bytes = int64_t{64} << 20;  // size at which a new segment begins
    int compression_level = 1;                  // zstd
  };

  // Creates the folder (mode 0700: stacks and command lines are private), or opens it to continue after its
  // last whole frame; truncates a torn frame at the end. Errors: kUnavailable when another writer holds it;
  // kCorrupt when a frame that was once synced is damaged; kTooNew; kNotFound without the folder's parent;
  // kPermissionDenied, kOutOfSpace, kIo.
  static Result<Writer> Open(const std::string& folder, Options options);
  static Result<Writer> Open(const std::string& folder) { return Open(folder, Options{}); }

  // Writes one frame and returns its sequence number. After an error (kOutOfSpace, kIo) the frame is not in
  // the spool, the file ends with the last whole frame again, and later frames may succeed. Beginning a new
  // segment syncs the old one, which can fail like Sync.
  Result<int64_t> Append(const model::Batch& batch);

  // fsync: everything appended so far survives. After an error (kIo, kOutOfSpace) it is unknown which of the
  // frames appended since the last successful Sync are on disk, and a second fsync would not help (the kernel
  // reports a failed write-back once). These frames are rolled back: last_sequence() is that of the last
  // synced frame again, their numbers are reused, and later frames go to a new segment.
  Status Sync();

  // Appends batches and syncs them. If one fails, the following ones are dropped, too: batches that define
  // names precede those that refer to them, and a count of dropped rows is better than a sample without its
  // stack.
  struct Stored {
    std::vector<int64_t> sequences;  // of each batch; 0 if it was dropped
    int64_t lost_rows = 0;
    std::optional<Error> failure;  // the first one, if anything was dropped
  };
  Stored Store(std::span<const model::Batch> batches);

  // Deletes the segments whose frames are all at or below `sequence` (never the one being written).
  Status DropThrough(int64_t sequence);

  // Numbers the next frame sequence + 1, and deletes all frames before it. `sequence` must not be below
  // last_sequence(). Errors: those of Append.
  Status SkipTo(int64_t sequence);

  // Identifies this spool in the `batches` table; random, created with the folder.
  Id128 id() const;
  int64_t last_sequence() const;
  // The number of the first frame that was not deleted; one above last_sequence() if there is none.
  int64_t first_sequence() const;

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
// first error that visit returns. A torn end of the last segment is reported and not an error; earlier damage
// is kCorrupt with file and offset. May run while a Writer appends, and then visits the frames that are
// whole. Errors: kNotFound if there is no spool; kTooNew, kPermissionDenied, kIo; those of visit.
Result<ReadSummary> Read(const std::string& folder, int64_t after,
                         const std::function<Status(int64_t sequence, const model::Batch&)>& visit);

// A frame as it lies in its segment; `payload` is only valid during the visit.
struct EncodedFrame {
  int64_t sequence = 0;
  std::span<const std::byte> payload;  // for DecodeBatch
  std::string place;                   // file, number and offset, for errors
};
// As Read, without decoding the frames; a visit that returns false ends it.
Result<ReadSummary> ReadEncoded(const std::string& folder, int64_t after,
                                const std::function<Result<bool>(const EncodedFrame&)>& visit);

// "FOLDER.damaged".
inline std::string DamagedFolderOf(const std::string& folder) { return folder + ".damaged"; }

// Renames a spool with a damaged frame that had been synced to DamagedFolderOf, replacing an earlier one, as
// the frames after it can't be sent. Returns the damage, or nothing if there is none. Reads the whole spool.
// Errors: kUnavailable while a writer has it; kTooNew, kPermissionDenied, kIo.
Result<std::optional<Error>> SetAsideIfDamaged(const std::string& folder);

// Bytes of the folder's segments. Errors: those of listing it.
Result<int64_t> StoredBytes(const std::string& folder);

// Whether the folder's segments have any whole frame; false without segments. Errors: as Read.
Result<bool> HasFrames(const std::string& folder);

}  // namespace gpusonde::spool
