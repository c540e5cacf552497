// SPDX-License-Identifier: Apache-2.0
#include "spool/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "model/schema.h"
#include "model/testing/random_batch.h"

namespace gpusonde::spool {
namespace {

using model::Batch;

Batch Threads(size_t rows) {
  std::mt19937_64 random(rows);
  return model::RandomBatch(*model::FindTable("threads"), rows, random);
}

std::vector<std::byte> Compress(std::span<const std::byte> content) {
  std::vector<std::byte> frame(ZSTD_compressBound(content.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 1));
  return frame;
}

std::vector<std::byte> Decompress(std::span<const std::byte> frame) {
  std::vector<std::byte> content(ZSTD_getFrameContentSize(frame.data(), frame.size()));
  EXPECT_EQ(ZSTD_decompress(content.data(), content.size(), frame.data(), frame.size()), content.size());
  return content;
}

TEST(Codec, RoundTripsEveryTable) {
  std::mt19937_64 random(1);
  for (const model::TableInfo& table : model::AllTables()) {
    for (const size_t rows : {0, 1, 1000}) {
      const Batch batch = model::RandomBatch(table, rows, random);
      const auto bytes = EncodeBatch(batch);
      ASSERT_TRUE(bytes.has_value()) << table.name << ": " << bytes.error().message;
      const auto decoded = DecodeBatch(*bytes);
      ASSERT_TRUE(decoded.has_value()) << table.name << ": " << decoded.error().message;
      EXPECT_TRUE(model::SameBatch(*decoded, batch)) << table.name;
    }
  }
}

TEST(Codec, DoesNotEncodeAnInconsistentBatch) {
  Batch batch = Threads(3);
  batch.columns[0].values.pop_back();
  EXPECT_EQ(EncodeBatch(batch).error().code, ErrorCode::kCorrupt);
}

TEST(Codec, RejectsABatchBeyondTheBound) {
  Batch batch;
  batch.table = "t";
  batch.rows = kMaxBatchBytes + 1;
  batch.columns = {
      {.name = "b", .type = model::ColumnType::kBool, .values = std::vector<std::byte>(batch.rows)}};
  EXPECT_EQ(EncodeBatch(batch).error().code, ErrorCode::kInvalidArgument);
}

TEST(Codec, SkipsAColumnOfAnUnknownType) {
  Batch batch = Threads(3);
  std::vector<std::byte> content = Decompress(EncodeBatch(batch).value());
  // version, "threads", rows, columns, then the first column: "process" and its type
  const size_t type_of_first_column = 1 + 2 + 7 + 4 + 2 + 2 + 7;
  ASSERT_EQ(content[type_of_first_column], std::byte{static_cast<uint8_t>(model::ColumnType::kId128)});
  content[type_of_first_column] = std::byte{200};
  const auto decoded = DecodeBatch(Compress(content));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  batch.columns.erase(batch.columns.begin());
  EXPECT_TRUE(model::SameBatch(*decoded, batch));
}

TEST(Codec, ReportsALaterEncodingAsTooNew) {
  std::vector<std::byte> content = Decompress(EncodeBatch(Threads(3)).value());
  content[0] = std::byte{2};
  EXPECT_EQ(DecodeBatch(Compress(content)).error().code, ErrorCode::kTooNew);
  content[0] = std::byte{0};
  EXPECT_EQ(DecodeBatch(Compress(content)).error().code, ErrorCode::kCorrupt);
}

TEST(Codec, AllocatesNothingForAHugeClaimedSize) {
  // A real frame of zeros, which compress to a thousandth.
  const std::vector<std::byte> zeros(kMaxBatchBytes + 1);
  const auto decoded = DecodeBatch(Compress(zeros));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_THAT(decoded.error().message, testing::HasSubstr("claims 134217729 bytes"));
}

TEST(Codec, EveryTruncationIsAnError) {
  const std::vector<std::byte> bytes = EncodeBatch(Threads(20)).value();
  const std::vector<std::byte> content = Decompress(bytes);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(DecodeBatch(std::span(bytes).first(size)).error().code, ErrorCode::kCorrupt) << size;
  for (size_t size = 0; size < content.size(); ++size)
    EXPECT_EQ(DecodeBatch(Compress(std::span(content).first(size))).error().code, ErrorCode::kCorrupt)
        << size;
}

// Without the frame's checksum in front of it the codec may well accept changed values, but never a batch
// that isn't consistent, and it never reads or allocates out of bounds (run under the sanitizers).
TEST(Codec, DecodesChangedBytesToAnErrorOrAConsistentBatch) {
  const std::vector<std::byte> good = Decompress(EncodeBatch(Threads(20)).value());
  std::mt19937_64 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> content = good;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes)
      content[random() % content.size()] = static_cast<std::byte>(random());
    const auto decoded = DecodeBatch(Compress(content));
    if (decoded.has_value()) {
      EXPECT_TRUE(model::Validate(*decoded).has_value());
    }
  }
}

}  // namespace
}  // namespace gpusonde::spool
