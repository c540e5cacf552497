// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "spool/codec.h"
#include "spool/segment.h"
#include "spool/spool.h"

namespace gpusonde::spool {
namespace {

// Opens the segment; nullopt when a writer has deleted it since the folder was listed.
Result<std::optional<SegmentReader>> OpenIfThere(const SegmentName& name) {
  Result<SegmentReader> reader = SegmentReader::Open(name);
  if (reader.has_value()) return std::move(*reader);
  if (reader.error().code == ErrorCode::kNotFound) return std::nullopt;
  return Fail(std::move(reader).error());
}

}  // namespace

Result<ReadSummary> ReadEncoded(const std::string& folder, int64_t after,
                                const std::function<Result<bool>(const EncodedFrame&)>& visit) {
  ASSIGN_OR_RETURN(const std::vector<SegmentName> segments, ListSegments(folder));
  if (segments.empty()) return Fail(ErrorCode::kNotFound, folder + " holds no spool of gpusonde");
  ReadSummary summary;
  bool begun = false;
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool is_last = i + 1 == segments.size();
    if (!is_last && segments[i + 1].first_sequence <= after + 1) continue;
    ASSIGN_OR_RETURN(std::optional<SegmentReader> reader, OpenIfThere(segments[i]));
    if (!reader.has_value() && !begun) continue;
    if (!reader.has_value())
      return Fail(ErrorCode::kCorrupt, segments[i].path + " vanished while the spool was read");
    if (begun && (segments[i].first_sequence != summary.last_sequence + 1 || reader->spool() != summary.id))
      return Fail(ErrorCode::kCorrupt, fmt::format("{} doesn't follow frame {} of the segment before it",
                                                   segments[i].path, summary.last_sequence));
    begun = true;
    summary.id = reader->spool();
    summary.last_sequence = segments[i].first_sequence - 1;
    // After a failed fsync the next segment reuses the numbers of the frames that were rolled back.
    const int64_t end = is_last ? INT64_MAX : segments[i + 1].first_sequence;
    while (summary.last_sequence + 1 < end) {
      const int64_t offset = reader->offset();
      ASSIGN_OR_RETURN(const std::optional<SegmentReader::Frame> frame, reader->Next());
      if (!frame.has_value()) break;
      summary.last_sequence = frame->sequence;
      if (frame->sequence <= after) continue;
      ++summary.frames;
      ASSIGN_OR_RETURN(const bool goes_on,
                       visit({.sequence = frame->sequence,
                              .payload = frame->payload,
                              .place = fmt::format("{}: frame {} at offset {}", segments[i].path,
                                                   frame->sequence, offset)}));
      if (!goes_on) return summary;
    }
    ASSIGN_OR_RETURN(const int64_t rest_bytes, reader->RestBytes());
    if (!is_last && rest_bytes > 0 && summary.last_sequence + 1 < end)
      return Fail(ErrorCode::kCorrupt, fmt::format("{}: frame {} at offset {} is damaged", segments[i].path,
                                                   summary.last_sequence + 1, reader->offset()));
    summary.torn_bytes = rest_bytes;
  }
  return summary;
}

Result<ReadSummary> Read(const std::string& folder, int64_t after,
                         const std::function<Status(int64_t sequence, const model::Batch&)>& visit) {
  return ReadEncoded(folder, after, [&](const EncodedFrame& frame) -> Result<bool> {
    Result<model::Batch> batch = DecodeBatch(frame.payload);
    if (!batch.has_value()) return Fail(std::move(batch).error().With(frame.place));
    TRY(visit(frame.sequence, *batch));
    return true;
  });
}

Result<int64_t> StoredBytes(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<SegmentName> segments, ListSegments(folder));
  int64_t bytes = 0;
  for (const SegmentName& segment : segments) {
    std::error_code deleted;
    const auto size = std::filesystem::file_size(segment.path, deleted);
    if (!deleted) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

Result<bool> HasFrames(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<SegmentName> segments, ListSegments(folder));
  for (const SegmentName& segment : segments) {
    ASSIGN_OR_RETURN(SegmentReader reader, SegmentReader::Open(segment));
    ASSIGN_OR_RETURN(const std::optional<SegmentReader::Frame> frame, reader.Next());
    if (frame.has_value()) return true;
  }
  return false;
}

}  // namespace gpusonde::spool
