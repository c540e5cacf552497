// SPDX-License-Identifier: Apache-2.0
#include "spool/codec.h"

#include <fmt/format.h>
#include <zstd.h>

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace gpusonde::spool {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are encoded as they lie in memory");

constexpr uint8_t kCodecVersion = 1;

// Collects the encoded batch.
class Buffer {
 public:
  explicit Buffer(size_t bytes) { bytes_.reserve(bytes); }
  void Put(const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Only counts the bytes, which are bounded before anything is copied.
class Counter {
 public:
  void Put(const void* /*data*/, size_t size) { bytes_ += size; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

template <class Sink, class T>
void PutNumber(Sink& sink, T value) {
  sink.Put(&value, sizeof value);
}

template <class Sink>
void PutName(Sink& sink, std::string_view name) {
  PutNumber(sink, static_cast<uint16_t>(name.size()));
  sink.Put(name.data(), name.size());
}

template <class Sink, class T>
void PutBlob(Sink& sink, const std::vector<T>& elements) {
  PutNumber(sink, static_cast<uint32_t>(elements.size() * sizeof(T)));
  sink.Put(elements.data(), elements.size() * sizeof(T));
}

template <class Sink>
void PutBatch(Sink& sink, const model::Batch& batch) {
  PutNumber(sink, kCodecVersion);
  PutName(sink, batch.table);
  PutNumber(sink, static_cast<uint32_t>(batch.rows));
  PutNumber(sink, static_cast<uint16_t>(batch.columns.size()));
  for (const model::ColumnData& column : batch.columns) {
    PutName(sink, column.name);
    PutNumber(sink, static_cast<uint8_t>(column.type));
    PutBlob(sink, column.valid);
    PutBlob(sink, column.ends);
    PutBlob(sink, column.values);
  }
}

// Reads from the front of untrusted bytes. After the first short read it stays failed and returns zeros.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  T Number() {
    T value{};
    const std::span<const std::byte> bytes = Take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::string Name() {
    const std::span<const std::byte> bytes = Take(Number<uint16_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Bytes that aren't a whole number of elements are a failure.
  template <class T>
  std::vector<T> Blob() {
    const std::span<const std::byte> bytes = Take(Number<uint32_t>());
    if (bytes.size() % sizeof(T) != 0) failed_ = true;
    std::vector<T> elements(bytes.size() / sizeof(T));
    if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
    return elements;
  }

  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> Take(size_t size) {
    if (failed_ || size > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::span<const std::byte> taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::span<const std::byte> rest_;
  bool failed_ = false;
};

Result<std::vector<std::byte>> Decompress(std::span<const std::byte> bytes, size_t max_bytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return Fail(ErrorCode::kCorrupt, "batch: not a zstd frame of known size");
  if (size > max_bytes)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("batch: claims {} bytes, at most {} are allowed", size, max_bytes));
  std::vector<std::byte> content(size);
  const size_t decompressed = ZSTD_decompress(content.data(), content.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(decompressed))
    return Fail(ErrorCode::kCorrupt, fmt::format("batch: {}", ZSTD_getErrorName(decompressed)));
  if (decompressed != content.size()) return Fail(ErrorCode::kCorrupt, "batch: shorter than its header says");
  return content;
}

bool IsKnown(model::ColumnType type) { return type <= model::ColumnType::kInt64List; }

}  // namespace

Encoder::Encoder(int compression_level) : context_(ZSTD_createCCtx()) {
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, compression_level);
}

void Encoder::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

Result<std::vector<std::byte>> Encoder::Encode(const model::Batch& batch) {
  TRY(model::Validate(batch));
  constexpr size_t kMaxNameBytes = std::numeric_limits<uint16_t>::max();
  bool names_fit = batch.table.size() <= kMaxNameBytes && batch.columns.size() <= kMaxNameBytes;
  for (const model::ColumnData& column : batch.columns)
    names_fit = names_fit && column.name.size() <= kMaxNameBytes;
  Counter counter;
  PutBatch(counter, batch);
  if (!names_fit || counter.bytes() > kMaxBatchBytes || batch.rows > kMaxBatchBytes)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("batch of {}: {} rows in {} bytes are more than one batch may hold ({} bytes); split it",
                    batch.table.substr(0, 100), batch.rows, counter.bytes(), kMaxBatchBytes));
  Buffer content(counter.bytes());
  PutBatch(content, batch);
  std::vector<std::byte> frame(ZSTD_compressBound(content.bytes().size()));
  const size_t written = ZSTD_compress2(context_.get(), frame.data(), frame.size(), content.bytes().data(),
                                        content.bytes().size());
  if (ZSTD_isError(written))
    return Fail(ErrorCode::kInternal, fmt::format("compress a batch: {}", ZSTD_getErrorName(written)));
  frame.resize(written);
  return frame;
}

Result<std::vector<std::byte>> EncodeBatch(const model::Batch& batch) { return Encoder().Encode(batch); }

Result<model::Batch> DecodeBatch(std::span<const std::byte> bytes, size_t max_bytes) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> content, Decompress(bytes, max_bytes));
  Reader reader(content);
  const auto version = reader.Number<uint8_t>();
  if (version > kCodecVersion)
    return Fail(ErrorCode::kTooNew, fmt::format("batch: encoding version {}, this gpusonde reads up to {}; "
                                                "read it with a newer one",
                                                version, kCodecVersion));
  model::Batch batch;
  batch.table = reader.Name();
  batch.rows = reader.Number<uint32_t>();
  const auto columns = reader.Number<uint16_t>();
  for (size_t i = 0; i < columns && !reader.failed(); ++i) {
    model::ColumnData column;
    column.name = reader.Name();
    column.type = static_cast<model::ColumnType>(reader.Number<uint8_t>());
    column.valid = reader.Blob<uint8_t>();
    column.ends = reader.Blob<uint32_t>();
    column.values = reader.Blob<std::byte>();
    if (IsKnown(column.type)) batch.columns.push_back(std::move(column));
  }
  if (version == 0 || reader.failed() || !reader.at_end())
    return Fail(ErrorCode::kCorrupt, "batch: its parts don't fit its length");
  // Every column has at least a byte per row; without columns, nothing bounds the row count.
  if (batch.rows > 0 && batch.columns.empty())
    return Fail(ErrorCode::kCorrupt, fmt::format("batch of {}: rows without columns", batch.table));
  TRY(model::Validate(batch));
  return batch;
}

}  // namespace gpusonde::spool
