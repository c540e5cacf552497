// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/batch.h"

struct ZSTD_CCtx_s;

// Encodes batches as bytes, for spool frames and for the agent's requests. Self-describing (table, column
// names and types), so that a reader of another version decodes the columns it knows and skips the rest.
//
// One zstd frame that states its content size. Inside, little-endian: version u8 (1), table name, rows u32,
// columns u16, and per column: name, type u8 (model::ColumnType), then three blobs: valid (a byte per row or
// nothing), ends (u32 per row; text and lists) and values, all as in model::ColumnData. A name is u16 length
// and bytes, a blob is u32 length and bytes.
namespace gpusonde::spool {

// Bound on a decoded batch, and so on what a hostile sender can make us allocate. A million samples are 61
// MB.
inline constexpr size_t kMaxBatchBytes = size_t{128} << 20;

// Encodes batches one after the other with the same memory of zstd's: to set it up takes longer than to
// compress the few rows that most batches have. Not thread-safe.
class Encoder {
 public:
  // `compression_level` is zstd's.
  explicit Encoder(int compression_level = 1);

  // Errors: kInvalidArgument when the batch is larger than kMaxBatchBytes or not valid.
  Result<std::vector<std::byte>> Encode(const model::Batch& batch);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

// One batch.
Result<std::vector<std::byte>> EncodeBatch(const model::Batch& batch);

// The inverse; safe on any bytes. Skips columns of types that this version doesn't know. The returned batch
// passes model::Validate. Errors: kCorrupt, also for a batch of more than `max_bytes`, which is found out
// before anything is decompressed; kTooNew for a later version of the encoding.
Result<model::Batch> DecodeBatch(std::span<const std::byte> bytes, size_t max_bytes = kMaxBatchBytes);

}  // namespace gpusonde::spool
