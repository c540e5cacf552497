// SPDX-License-Identifier: Apache-2.0
#include "spool/upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "spool/codec.h"

namespace gpusonde::spool {
namespace {

static_assert(std::endian::native == std::endian::little, "lengths are encoded as they lie in memory");

// With its objects: a million columns without rows take 15 MB encoded and 112 MB as objects.
size_t BytesOf(const model::Batch& batch) {
  size_t bytes = sizeof batch + batch.columns.size() * sizeof(model::ColumnData);
  for (const model::ColumnData& column : batch.columns)
    bytes += column.values.size() + column.ends.size() * sizeof(uint32_t) + column.valid.size();
  return bytes;
}

}  // namespace

void AppendToUpload(std::span<const std::byte> encoded, std::string& body) {
  const auto length = static_cast<uint32_t>(encoded.size());
  body.append(reinterpret_cast<const char*>(&length), sizeof length);
  body.append(reinterpret_cast<const char*>(encoded.data()), encoded.size());
}

Result<std::vector<model::Batch>> DecodeUpload(std::string_view body) {
  std::vector<model::Batch> batches;
  size_t room = kMaxDecodedUploadBytes;
  while (!body.empty()) {
    uint32_t length = 0;
    if (body.size() < sizeof length) return Fail(ErrorCode::kCorrupt, "the body ends inside a length");
    std::memcpy(&length, body.data(), sizeof length);
    body.remove_prefix(sizeof length);
    if (length > body.size())
      return Fail(ErrorCode::kCorrupt, fmt::format("frame {} has {} bytes, the body only {} more",
                                                   batches.size() + 1, length, body.size()));
    Result<model::Batch> batch = DecodeBatch(std::as_bytes(std::span(body.substr(0, length))), room);
    if (!batch.has_value())
      return Fail(std::move(batch).error().With(fmt::format("frame {}", batches.size() + 1)));
    room -= std::min(room, BytesOf(*batch));
    batches.push_back(*std::move(batch));
    body.remove_prefix(length);
  }
  return batches;
}

}  // namespace gpusonde::spool
