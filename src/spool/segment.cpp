// SPDX-License-Identifier: Apache-2.0
#include "spool/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/text.h"

namespace gpusonde::spool {
namespace {

constexpr std::string_view kMagic = "gpusonde";
constexpr uint32_t kSegmentVersion = 1;
constexpr std::string_view kSuffix = ".segment";

template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void Save(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// A frame header as stored on disk.
struct FrameHeader {
  uint64_t checksum;
  int64_t sequence;
  int64_t synced;
  uint32_t length;

  static FrameHeader Parse(const std::byte* at) {
    return {Load<uint64_t>(at), Load<int64_t>(at + 8), Load<int64_t>(at + 16), Load<uint32_t>(at + 24)};
  }
};

uint64_t FrameChecksum(Id128 spool, std::span<const std::byte> frame) {
  return XXH3_64bits_withSeed(frame.data() + 8, frame.size() - 8, spool.low);
}

std::optional<int64_t> SequenceOfName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  const std::optional<int64_t> sequence = ParseNumber<int64_t>(name);
  return sequence.has_value() && *sequence >= 1 ? sequence : std::nullopt;
}

}  // namespace

Result<std::vector<SegmentName>> ListSegments(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), &::closedir);
  if (stream == nullptr) return Fail(ErrnoError(errno, "open spool folder " + folder));
  std::vector<SegmentName> segments;
  while (const dirent* entry = ::readdir(stream.get())) {
    if (const std::optional<int64_t> sequence = SequenceOfName(entry->d_name))
      segments.push_back({folder + "/" + entry->d_name, *sequence});
  }
  std::ranges::sort(segments, {}, &SegmentName::first_sequence);
  return segments;
}

SegmentName NameSegment(const std::string& folder, int64_t first_sequence) {
  return {.path = fmt::format("{}/{:019}{}", folder, first_sequence, kSuffix),
          .first_sequence = first_sequence};
}

Result<Fd> CreateSegment(const std::string& folder, Id128 spool, int64_t first_sequence) {
  std::array<std::byte, kSegmentHeaderBytes> header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  Save(&header[8], kSegmentVersion);
  Save(&header[16], spool.high);
  Save(&header[24], spool.low);
  Save(&header[32], first_sequence);
  Save(&header[40], static_cast<uint64_t>(XXH3_64bits(header.data(), 40)));

  const std::string path = NameSegment(folder, first_sequence).path;
  const std::string temporary = folder + "/new-segment.tmp";
  ASSIGN_OR_RETURN(Fd fd, Open(temporary, O_RDWR | O_CREAT | O_TRUNC, 0600));
  if (const Status written = WriteAll(fd.get(), header); !written.has_value())
    return Fail(Error(written.error()).With(temporary));
  if (::fsync(fd.get()) != 0) return Fail(ErrnoError(errno, "fsync " + temporary));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return Fail(ErrnoError(errno, "rename to " + path));
  TRY(SyncFolderOf(path));
  return fd;
}

std::vector<std::byte> MakeFrame(Id128 spool, int64_t sequence, int64_t synced,
                                 std::span<const std::byte> payload) {
  std::vector<std::byte> frame(kFrameHeaderBytes + payload.size());
  Save(&frame[8], sequence);
  Save(&frame[16], synced);
  Save(&frame[24], static_cast<uint32_t>(payload.size()));
  std::ranges::copy(payload, frame.begin() + kFrameHeaderBytes);
  Save(&frame[0], FrameChecksum(spool, frame));
  return frame;
}

Result<SegmentReader> SegmentReader::Open(const SegmentName& name) {
  ASSIGN_OR_RETURN(Fd fd, gpusonde::Open(name.path, O_RDONLY));
  std::array<std::byte, kSegmentHeaderBytes> header{};
  ASSIGN_OR_RETURN(const size_t bytes, ReadAt(fd.get(), 0, header, name.path));
  const auto corrupt = [&](std::string_view what) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: {}", name.path, what));
  };
  if (bytes < header.size() || std::memcmp(header.data(), kMagic.data(), kMagic.size()) != 0)
    return corrupt("not a spool segment of gpusonde");
  if (const auto version = Load<uint32_t>(&header[8]); version > kSegmentVersion)
    return Fail(ErrorCode::kTooNew,
                fmt::format("{}: written by a newer gpusonde (segment version {}, this one "
                            "reads up to {})",
                            name.path, version, kSegmentVersion));
  if (Load<uint64_t>(&header[40]) != XXH3_64bits(header.data(), 40)) return corrupt("damaged segment header");
  if (Load<int64_t>(&header[32]) != name.first_sequence)
    return corrupt("renamed: its header says another number");
  SegmentReader reader(std::move(fd), name.path);
  reader.spool_ = {Load<uint64_t>(&header[16]), Load<uint64_t>(&header[24])};
  reader.next_sequence_ = name.first_sequence;
  reader.offset_ = kSegmentHeaderBytes;
  return reader;
}

Result<std::optional<SegmentReader::Frame>> SegmentReader::Next() {
  ASSIGN_OR_RETURN(std::optional<Frame> frame, ReadFrame());
  if (frame.has_value()) return frame;
  ASSIGN_OR_RETURN(const bool was_synced, RestWasSynced());
  if (!was_synced) return std::nullopt;
  // A concurrent writer may have completed the frame since it was read.
  ASSIGN_OR_RETURN(frame, ReadFrame());
  if (frame.has_value()) return frame;
  return Fail(ErrorCode::kCorrupt,
              fmt::format("{}: frame {} at offset {} is damaged, and there are whole frames after it", path_,
                          next_sequence_, offset_));
}

// The frame at offset(), or nullopt if it isn't whole.
Result<std::optional<SegmentReader::Frame>> SegmentReader::ReadFrame() {
  std::vector<std::byte> frame(kFrameHeaderBytes);
  ASSIGN_OR_RETURN(const size_t header_bytes,
                   ReadAt(fd_.get(), static_cast<uint64_t>(offset_), frame, path_));
  if (header_bytes < kFrameHeaderBytes) return std::nullopt;
  const FrameHeader header = FrameHeader::Parse(frame.data());
  ASSIGN_OR_RETURN(const int64_t rest_bytes, RestBytes());
  if (header.sequence != next_sequence_ || header.length > kMaxPayloadBytes ||
      static_cast<int64_t>(kFrameHeaderBytes + header.length) > rest_bytes)
    return std::nullopt;
  frame.resize(kFrameHeaderBytes + header.length);
  ASSIGN_OR_RETURN(const size_t bytes, ReadAt(fd_.get(), static_cast<uint64_t>(offset_), frame, path_));
  if (bytes < frame.size() || FrameChecksum(spool_, frame) != Load<uint64_t>(frame.data()))
    return std::nullopt;
  offset_ += static_cast<int64_t>(frame.size());
  ++next_sequence_;
  frame.erase(frame.begin(), frame.begin() + kFrameHeaderBytes);
  return Frame{header.sequence, std::move(frame)};
}

Result<int64_t> SegmentReader::RestBytes() const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return Fail(ErrnoError(errno, "stat " + path_));
  return status.st_size - offset_;
}

// Whether a later frame shows that the frame expected at offset() had been synced. The frame boundaries after
// it are unknown, so every offset is tried; the sequence number and the length exclude nearly all of them.
Result<bool> SegmentReader::RestWasSynced() const {
  ASSIGN_OR_RETURN(const int64_t rest_bytes, RestBytes());
  std::vector<std::byte> rest(static_cast<size_t>(std::max<int64_t>(rest_bytes, 0)));
  ASSIGN_OR_RETURN(const size_t bytes, ReadAt(fd_.get(), static_cast<uint64_t>(offset_), rest, path_));
  rest.resize(bytes);
  for (size_t at = 1; at + kFrameHeaderBytes <= rest.size(); ++at) {
    const FrameHeader header = FrameHeader::Parse(&rest[at]);
    if (header.sequence <= next_sequence_ || header.synced < next_sequence_) continue;
    if (header.synced >= header.sequence || header.length > rest.size() - at - kFrameHeaderBytes) continue;
    const auto frame = std::span(rest).subspan(at, kFrameHeaderBytes + header.length);
    if (FrameChecksum(spool_, frame) == header.checksum) return true;
  }
  return false;
}

}  // namespace gpusonde::spool
