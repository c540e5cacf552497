// SPDX-License-Identifier: Apache-2.0
#include "spool/upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "model/schema.h"
#include "model/testing/random_batch.h"
#include "spool/codec.h"

namespace gpusonde::spool {
namespace {

using testing::HasSubstr;

std::vector<std::byte> Zstd(std::string_view content) {
  std::vector<std::byte> frame(ZSTD_compressBound(content.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 3));
  return frame;
}

TEST(Upload, RoundTripsBatchesInTheirOrder) {
  std::mt19937_64 random(1);
  std::vector<model::Batch> batches;
  std::string body;
  for (const char* table : {"threads", "samples", "threads", "kernel_packs"}) {
    batches.push_back(model::RandomBatch(*model::FindTable(table), 100, random));
    AppendToUpload(EncodeBatch(batches.back()).value(), body);
  }
  const auto decoded = DecodeUpload(body);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  ASSERT_EQ(decoded->size(), batches.size());
  for (size_t i = 0; i < batches.size(); ++i) EXPECT_TRUE(model::SameBatch((*decoded)[i], batches[i])) << i;
}

TEST(Upload, ADayIsPlausibleForAYearAndOnTheDayBeforeIt) {
  constexpr int64_t kToday = 20'785;
  for (const int64_t day : {kToday - 366, kToday, kToday + 1})
    EXPECT_TRUE(IsPlausibleDay(day, kToday)) << day;
  for (const int64_t day : {int64_t{0}, kToday - 367, kToday + 2})
    EXPECT_FALSE(IsPlausibleDay(day, kToday)) << day;
  EXPECT_EQ(FormatDay(kToday), "2026-11-28");
  EXPECT_EQ(FormatDay(1'000'000), "4707-11-29");
}

TEST(Upload, EveryPrefixButTheWholeFramesIsRefused) {
  std::mt19937_64 random(2);
  std::string body;
  std::vector<size_t> ends{0};
  for (int i = 0; i < 2; ++i) {
    AppendToUpload(EncodeBatch(model::RandomBatch(*model::FindTable("threads"), 3, random)).value(), body);
    ends.push_back(body.size());
  }
  for (size_t length = 0; length <= body.size(); ++length) {
    const auto decoded = DecodeUpload(std::string_view(body).substr(0, length));
    const auto whole = std::ranges::find(ends, length);
    if (whole == ends.end())
      EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt) << length;
    else
      EXPECT_EQ(decoded.value().size(), static_cast<size_t>(whole - ends.begin()));
  }
}

TEST(Upload, DecompressesNoMoreThanTheBound) {
  std::string body;
  AppendToUpload(Zstd(std::string(kMaxDecodedUploadBytes + 1, '\0')), body);
  ASSERT_LT(body.size(), 16u << 10) << "a bomb is small";
  EXPECT_THAT(DecodeUpload(body).error().message, HasSubstr("67108864 are allowed"));
}

TEST(Upload, RowsAreCountedOfFramesThatAreTooLargeToDecode) {
  std::string body;
  int64_t rows = 0;
  for (const size_t count : {size_t{3}, kMaxDecodedUploadBytes + 1}) {
    model::Batch batch{.table = "devices", .rows = count, .columns = {}};
    batch.columns.push_back({.name = "simulated", .type = model::ColumnType::kBool});
    batch.columns[0].values.resize(count);
    AppendToUpload(EncodeBatch(batch).value(), body);
    rows += static_cast<int64_t>(count);
  }
  EXPECT_FALSE(DecodeUpload(body).has_value());
  EXPECT_EQ(CountRows(body), rows);
  EXPECT_EQ(CountRows(""), 0);
}

TEST(Upload, TheBoundHoldsForAllFramesTogetherAndForObjects) {
  // A batch without rows: 60,000 columns with empty names, 15 bytes each, of which each becomes an object.
  constexpr uint16_t kColumns = 60'000;
  std::string content("\x01\x00\x00\x00\x00\x00\x00", 7);
  content.append(reinterpret_cast<const char*>(&kColumns), sizeof kColumns);
  content.append(size_t{15} * kColumns, '\0');
  const std::vector<std::byte> encoded = Zstd(content);
  std::string body;
  AppendToUpload(encoded, body);
  ASSERT_TRUE(DecodeUpload(body).has_value()) << DecodeUpload(body).error().message;
  for (int i = 0; i < 99; ++i) AppendToUpload(encoded, body);
  ASSERT_LT(body.size(), 1u << 20);
  const auto decoded = DecodeUpload(body);
  EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(decoded.error().message, HasSubstr("frame 11: batch: claims 900009 bytes"));
}

}  // namespace
}  // namespace gpusonde::spool
