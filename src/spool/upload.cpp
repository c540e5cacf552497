// SPDX-License-Identifier: Apache-2.0
#include "spool/upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <span>
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

// Removes the first frame of a body, which isn't empty. Errors: kCorrupt.
Result<std::span<const std::byte>> TakeFrame(std::string_view& body) {
  uint32_t length = 0;
  if (body.size() < sizeof length) return Fail(ErrorCode::kCorrupt, "the body ends inside its length");
  std::memcpy(&length, body.data(), sizeof length);
  body.remove_prefix(sizeof length);
  if (length > body.size())
    return Fail(ErrorCode::kCorrupt,
                fmt::format("it has {} bytes, the body only {} more", length, body.size()));
  const std::span<const std::byte> encoded = std::as_bytes(std::span(body.substr(0, length)));
  body.remove_prefix(length);
  return encoded;
}

}  // namespace

std::string FormatDay(int64_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

void AppendToUpload(std::span<const std::byte> encoded, std::string& body) {
  const auto length = static_cast<uint32_t>(encoded.size());
  body.append(reinterpret_cast<const char*>(&length), sizeof length);
  body.append(reinterpret_cast<const char*>(encoded.data()), encoded.size());
}

Result<std::vector<model::Batch>> DecodeUpload(std::string_view body) {
  std::vector<model::Batch> batches;
  size_t room = kMaxDecodedUploadBytes;
  while (!body.empty()) {
    const auto in_frame = [&](Error error) {
      return Fail(std::move(error).With(fmt::format("frame {}", batches.size() + 1)));
    };
    Result<std::span<const std::byte>> encoded = TakeFrame(body);
    if (!encoded.has_value()) return in_frame(std::move(encoded).error());
    Result<model::Batch> batch = DecodeBatch(*encoded, room);
    if (!batch.has_value()) return in_frame(std::move(batch).error());
    room -= std::min(room, BytesOf(*batch));
    batches.push_back(*std::move(batch));
  }
  return batches;
}

int64_t CountRows(std::string_view body) {
  int64_t rows = 0;
  while (!body.empty()) {
    const Result<std::span<const std::byte>> encoded = TakeFrame(body);
    if (!encoded.has_value()) break;
    if (const Result<model::Batch> batch = DecodeBatch(*encoded); batch.has_value())
      rows += static_cast<int64_t>(batch->rows);
  }
  return rows;
}

}  // namespace gpusonde::spool
