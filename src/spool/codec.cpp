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

// Streams pieces into zstd, so that a batch isn't copied before it is compressed.
class Compressor {
 public:
  Compressor(size_t content_bytes, int level)
      : context_(ZSTD_createCCtx(), &ZSTD_freeCCtx), output_(ZSTD_compressBound(content_bytes)) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setPledgedSrcSize(context_.get(), content_bytes);
  }

  void Put(const void* data, size_t size) { Feed({data, size, 0}, ZSTD_e_continue); }

  Result<std::vector<std::byte>> Finish() {
    Feed({nullptr, 0, 0}, ZSTD_e_end);
    if (ZSTD_isError(status_))
      return Fail(ErrorCode::kInternal, fmt::format("compress a batch: {}", ZSTD_getErrorName(status_)));
    output_.resize(written_);
    return std::move(output_);
  }

 private:
  void Feed(ZSTD_inBuffer input, ZSTD_EndDirective directive) {
    ZSTD_outBuffer output{output_.data(), output_.size(), written_};
    do {
      if (ZSTD_isError(status_)) return;
      status_ = ZSTD_compressStream2(context_.get(), &output, &input, directive);
    } while (input.pos < input.size || (directive == ZSTD_e_end && status_ != 0));
    written_ = output.pos;
  }

  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;
  std::vector<std::byte> output_;
  size_t written_ = 0;
  size_t status_ = 0;
};

// Only counts the bytes, as the content size must be known before compression begins.
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

Result<std::vector<std::byte>> EncodeBatch(const model::Batch& batch, int compression_level) {
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
  Compressor compressor(counter.bytes(), compression_level);
  PutBatch(compressor, batch);
  return compressor.Finish();
}

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
