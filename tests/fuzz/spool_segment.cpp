// SPDX-License-Identifier: Apache-2.0
// A segment of a spool after a crash: complete frames followed by arbitrary bytes, or only arbitrary bytes.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/fd.h"
#include "scratch_folder.h"
#include "spool/segment.h"

namespace {

using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own

constexpr Id128 kSpool{.high = 1, .low = 2};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder folder;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  // Bit 0: a header before the input; bits 1-2: the number of complete frames between; bit 3: the last one
  // claims that all were synced.
  auto file = spool::CreateSegment(folder.path(), kSpool, 1);
  if (!file.has_value()) std::abort();
  const int frames = (data[0] & 1) != 0 ? (data[0] >> 1) & 3 : 0;
  if ((data[0] & 1) == 0 && (::ftruncate(file->get(), 0) != 0 || ::lseek(file->get(), 0, SEEK_SET) != 0))
    std::abort();
  for (int sequence = 1; sequence <= frames; ++sequence) {
    const int64_t synced = (data[0] & 8) != 0 ? sequence - 1 : 0;
    if (!WriteAll(file->get(), spool::MakeFrame(kSpool, sequence, synced, bytes.first(bytes.size() / 2)))
             .has_value())
      std::abort();
  }
  if (!WriteAll(file->get(), bytes).has_value()) std::abort();

  const auto segments = spool::ListSegments(folder.path());
  if (!segments.has_value() || segments->size() != 1) std::abort();
  auto reader = spool::SegmentReader::Open(segments->front());
  if (!reader.has_value()) {
    if ((data[0] & 1) != 0) std::abort();  // its header is complete
    return 0;
  }
  int64_t read = 0;
  for (;;) {
    const auto frame = reader->Next();
    if (!frame.has_value() || !frame->has_value()) break;
    if ((*frame)->sequence != ++read) std::abort();
    if ((*frame)->payload.size() > spool::kMaxPayloadBytes) std::abort();
  }
  if (read < frames) std::abort();  // complete frames are read whatever follows
  return 0;
}
