// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/splitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "importers/kineto/names.h"
#include "importers/kineto/xla_tracks.h"

namespace gpusonde::importers::kineto {
namespace {

// The parsers need up to eight times as much memory, so that nothing that a small file inflates to takes more
// than 256 MB.
constexpr size_t kMaxEventBytes = size_t{16} << 20;
constexpr size_t kMaxMetadataBytes = size_t{8} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kEventsKey = "traceEvents";
constexpr std::string_view kReadJson =
    "of JSON, Chrome-style traces are read (PyTorch's profiler, JAX's *.trace.json.gz); reports of Nsight "
    "Systems: "
    "nsys export --type sqlite";

}  // namespace

Result<bool> EventSplitter::ReadMore() {
  const size_t before = buffer_.size();
  size_t count = 0;
  Error error;
  bool failed = false;
  buffer_.reserve(before + kChunkBytes + kPadding + 1);
  buffer_.resize_and_overwrite(before + kChunkBytes, [&](char* data, size_t size) {
    auto read = source_.Read({data + before, size - before});
    failed = !read.has_value();
    if (failed)
      error = std::move(read).error();
    else
      count = *read;
    return before + count;
  });
  if (failed) return Fail(std::move(error));
  source_ended_ = count < kChunkBytes;
  return count > 0;
}

// Looks for an array of events at the object's own level, or for one that is the whole text. Leaves the text
// from the array's '[' in buffer_ and adds the text before it to metadata_. False at the end of the text.
Result<bool> EventSplitter::FindEvents() {
  const bool first = !begun_;
  size_t at = 0;
  int64_t depth = first ? 0 : 1;
  bool in_string = false;
  bool escaped = false;
  bool key_seen = false;  // "traceEvents" was the last string at depth 1
  size_t string_begin = 0;
  while (true) {
    if (at == buffer_.size()) {
      if (metadata_.size() + buffer_.size() > kMaxMetadataBytes)
        return Fail(
            ErrorCode::kUnsupported,
            first
                ? fmt::format("{}: no traceEvents in the first {} bytes; {}", source_.path(), at, kReadJson)
                : fmt::format("{}: more than {} bytes around its events", source_.path(), kMaxMetadataBytes));
      if (source_ended_) break;
      TRY(ReadMore());
      continue;
    }
    const char c = buffer_[at++];
    if (in_string) {
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_string = false;
        key_seen =
            depth == 1 && std::string_view(buffer_).substr(string_begin, at - 1 - string_begin) == kEventsKey;
      }
      continue;
    }
    if (c == '"') {
      in_string = true;
      string_begin = at;
    } else if (c == '[' && ((first && depth == 0) || (depth == 1 && key_seen && (first || object_)))) {
      object_ = depth == 1;
      const size_t mark = first && buffer_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
      metadata_ += buffer_.substr(mark, at - 1 - mark);
      consumed_ += at - 1;
      buffer_.erase(0, at - 1);
      brackets_ = BracketScanner();
      scanned_ = 1;
      begun_ = true;
      return true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (!IsBlank(c) && c != ':') {
      key_seen = false;
    }
  }
  if (!first) {
    metadata_ += buffer_;
    return false;
  }
  truncated_ = depth > 0 || in_string;
  if (truncated_)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: ends at byte {} before its events begin", source_.path(), at));
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: JSON without traceEvents; {}", source_.path(), kReadJson));
}

size_t EventSplitter::CommaBehind(size_t end) const {
  if (end == 0) return 0;
  const size_t at = buffer_.find_first_not_of(" \t\r\n", end);
  return at != std::string::npos && buffer_[at] == ',' ? at : 0;
}

Result<bool> EventSplitter::Next(Chunk& chunk) {
  while (!finished_) {
    ASSIGN_OR_RETURN(const bool has_events, Take(chunk));
    if (has_events) return true;
  }
  return false;
}

// Whether there are events in the chunk: an array may be empty.
Result<bool> EventSplitter::Take(Chunk& chunk) {
  const bool first = !begun_;
  if (first) TRY(FindEvents());
  // Less by what usually precedes the first event and is no part of the chunk, else the first one would be of
  // two reads: a third of the memory of a small trace.
  size_t wanted = kChunkBytes - kChunkBytes / 16;
  if (first && XlaTracks::MayBeIn(buffer_)) wanted = kXlaChunkBytes - kXlaChunkBytes / 16;
  while (true) {
    scanned_ = brackets_.Scan(buffer_, scanned_, source_ended_);
    if (brackets_.array_end() != 0 || source_ended_ ||
        (buffer_.size() >= wanted && CommaBehind(brackets_.last_end()) > 0))
      break;
    if (buffer_.size() > kMaxEventBytes)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: an event of more than {} bytes at byte {}",
                                                   source_.path(), kMaxEventBytes, consumed_));
    if (buffer_.size() >= wanted) wanted += kChunkBytes;
    TRY(ReadMore());
  }
  const size_t array_end = brackets_.array_end();
  const size_t last_end = brackets_.last_end();
  finished_ = array_end != 0 || source_ended_;
  // The parser also checks the text after the last event, except for a comma too many, which many writers
  // leave.
  constexpr std::string_view kBlanks = " \t\r\n";
  size_t behind = buffer_.find_first_not_of(kBlanks, std::max<size_t>(1, last_end));
  if (last_end > 0 && behind != std::string::npos && buffer_[behind] == ',')
    behind = buffer_.find_first_not_of(kBlanks, behind + 1);
  const bool only_events = array_end == 0 || behind == array_end;
  const size_t end = only_events ? last_end : array_end;
  const size_t comma = finished_ ? 0 : CommaBehind(end);
  brackets_.TakeEnds(chunk.ends);
  chunk.text.swap(buffer_);
  if (!finished_)
    buffer_.assign(chunk.text, comma);  // the little that was read of the next events
  else if (array_end != 0)
    buffer_.assign(chunk.text, array_end + 1);
  chunk.text.resize(end);
  if (end > 0) chunk.text += ']';
  chunk.text.reserve(chunk.text.size() + kPadding);
  consumed_ += end;
  if (!finished_) {
    consumed_ += comma - end;
    scanned_ = std::max(scanned_, comma + 1) - comma;
    buffer_[0] = '[';
    return true;
  }
  metadata_ += "[]";
  if (array_end != 0) {
    // The object may have the member twice; then events are in both.
    const uint64_t last_event = consumed_;
    consumed_ += array_end + 1 - end;
    ASSIGN_OR_RETURN(const bool more, FindEvents());
    finished_ = !more;
    if (!more) consumed_ = last_event;
  } else {
    truncated_ = true;
    if (object_) metadata_ += '}';
  }
  return end > 0;
}

}  // namespace gpusonde::importers::kineto
