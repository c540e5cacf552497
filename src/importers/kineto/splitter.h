// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "importers/kineto/brackets.h"
#include "importers/stream/byte_source.h"

namespace gpusonde::importers::kineto {

// Splits a trace into arrays of whole events of about kChunkBytes without parsing them: event boundaries are
// found from quotes, backslashes and brackets, 64 bytes at a time. So files of any size can be read, and
// threads parse while one reads. Chunks don't depend on who reads them.
//
// The trace is an object with "traceEvents" in it, once or several times, or that array alone.
class EventSplitter {
 public:
  // What a thread needs for one stays in the second-level cache, and a small trace touches little memory:
  // with 1 MiB, traces of 9 to 63 MB took 1.3 to 1.7 times the CPU time.
  static constexpr size_t kChunkBytes = size_t{128} << 10;
  // The first one of a trace of XLA, so that it has all metadata (XlaTracks::Learn).
  static constexpr size_t kXlaChunkBytes = size_t{1} << 20;
  // Bytes allocated after a chunk's text, for parsers that read ahead.
  static constexpr size_t kPadding = 64;

  struct Chunk {
    std::string text;            // a JSON array
    std::vector<uint32_t> ends;  // where its elements that are objects or arrays end
  };

  explicit EventSplitter(ByteSource& source) : source_(source) {}

  // Reads the next events into `chunk`, reusing its memory; returns false when there are none left. Errors:
  // kUnsupported for JSON without traceEvents, more than 8 MiB around them, kCorrupt for an event of
  // more than 16 MiB and for invalid JSON, with offsets; those of the source.
  Result<bool> Next(Chunk& chunk);

  // The trace without its events, as a JSON object with empty traceEvents; complete when Next has returned
  // false.
  const std::string& metadata() const { return metadata_; }
  // Whether the array of events, or what is behind it, ends in the middle. Complete as above.
  bool truncated() const { return truncated_; }
  // Bytes of JSON up to where the last whole event ends.
  uint64_t offset() const { return consumed_; }

 private:
  Result<bool> ReadMore();
  Result<bool> FindEvents();
  Result<bool> Take(Chunk& chunk);
  // Where the comma behind an event that ends at `end` is; 0 if it isn't in buffer_.
  size_t CommaBehind(size_t end) const;

  ByteSource& source_;
  std::string buffer_;  // '[' and what was read but not handed out
  std::string metadata_;
  BracketScanner brackets_;
  size_t scanned_ = 0;  // of buffer_
  bool begun_ = false;
  bool source_ended_ = false;
  bool finished_ = false;
  bool object_ = false;  // the array is inside an object
  bool truncated_ = false;
  uint64_t consumed_ = 0;
};

}  // namespace gpusonde::importers::kineto
