// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "fleet/privacy/random.h"
#include "spool/segment.h"

namespace gpusonde::fleet {
namespace {

constexpr int64_t kFirst = 1;

Id128 RandomId() {
  privacy::Random random = privacy::Random::FromSystem();
  return {.high = random.Next(), .low = random.Next()};
}

}  // namespace

Result<Journal> Journal::Open(const std::string& folder, const Visit& visit) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return Fail(ErrnoError(errno, "make " + folder));
  ASSIGN_OR_RETURN(const std::vector<spool::SegmentName> segments, spool::ListSegments(folder));
  if (segments.empty()) {
    const Id128 id = RandomId();
    ASSIGN_OR_RETURN(Fd fd, spool::CreateSegment(folder, id, kFirst));
    return Journal(folder, std::move(fd), id, kFirst - 1);
  }
  ASSIGN_OR_RETURN(spool::SegmentReader reader, spool::SegmentReader::Open(segments.back()));
  int64_t last = kFirst - 1;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<spool::SegmentReader::Frame> frame, reader.Next());
    if (!frame.has_value()) break;
    last = frame->sequence;
    TRY(visit({reinterpret_cast<const uint8_t*>(frame->payload.data()), frame->payload.size()}));
  }
  ASSIGN_OR_RETURN(Fd fd, gpusonde::Open(segments.back().path, O_RDWR));
  if (::ftruncate(fd.get(), reader.offset()) != 0 || ::lseek(fd.get(), 0, SEEK_END) < 0)
    return Fail(ErrnoError(errno, "cut the end of " + segments.back().path));
  return Journal(folder, std::move(fd), reader.spool(), last);
}

Status Journal::Append(char type, std::span<const uint8_t> record) {
  if (!fd_.valid())
    return Fail(ErrorCode::kUnavailable, folder_ + ": writing to it failed before; it is to be opened again");
  std::vector<std::byte> payload;
  payload.reserve(1 + record.size());
  payload.push_back(static_cast<std::byte>(type));
  const auto bytes = std::as_bytes(record);
  payload.insert(payload.end(), bytes.begin(), bytes.end());
  const std::vector<std::byte> frame = spool::MakeFrame(id_, last_ + 1, last_, payload);
  Status written = WriteAll(fd_.get(), frame);
  if (written.has_value() && ::fdatasync(fd_.get()) != 0) written = Fail(ErrnoError(errno, "sync a journal"));
  if (!written.has_value()) {
    fd_.Close();
    return Fail(std::move(written).error().With(folder_));
  }
  ++last_;
  return {};
}

}  // namespace gpusonde::fleet
