// SPDX-License-Identifier: Apache-2.0
#include "importers/activities/nccl_payloads.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>

#include "base/testing/temp_folder.h"

namespace gpusonde::importers::activities {
namespace {

// A made database with the layouts that the export of a real trace has (h100_2gpu_1s in the shared traces):
// two of NCCL's calls and one of another domain.
std::unique_ptr<sqlite::Database> MadeLayouts(const std::string& path) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, R"(
      CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL,
          idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, description TEXT,
          arrayOrUnionDetail INTEGER, offset INTEGER);
      INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES
          (1, 16777218, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
          (1, 16777218, 1, NULL, 5, 'No. of ranks', NULL, NULL, 8),
          (1, 16777218, 2, NULL, 5, 'Rank', NULL, NULL, 12),
          (1, 16777220, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
          (1, 16777220, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8),
          (2, 16777220, 0, NULL, 22, 'Message size [bytes]', NULL, NULL, NULL);)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  auto opened = sqlite::Database::Open(path);
  EXPECT_TRUE(opened.has_value());
  return *std::move(opened);
}

template <class... Numbers>
std::string Bytes(Numbers... numbers) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return bytes;
}

class NcclPayloadsTest : public testing::Test {
 protected:
  TempFolder folder_;
  std::unique_ptr<sqlite::Database> database_ = MadeLayouts(folder_.path() + "/layouts.sqlite");
  NcclPayloads payloads_ = NcclPayloads::Read(*database_).value();
};

TEST_F(NcclPayloadsTest, ACommunicatorIsReadByTheLayoutThatThePayloadNames) {
  constexpr uint64_t kCommunicator = 0xFEDC'BA98'7654'3210;
  const auto created =
      payloads_.DecodeBytes(Bytes(uint64_t{1}, uint64_t{16'777'218}, uint64_t{24}, uint64_t{56},
                                  kCommunicator, int32_t{8}, int32_t{3}, int32_t{0}, int32_t{0}));
  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->communicator, kCommunicator);
  EXPECT_EQ(created->ranks, 8);
  EXPECT_FALSE(created->is_operation);
  const auto gathered = payloads_.DecodeBytes(
      Bytes(uint64_t{1}, uint64_t{16'777'220}, uint64_t{16}, uint64_t{48}, kCommunicator, uint64_t{4'096}));
  ASSERT_TRUE(gathered.has_value());
  EXPECT_EQ(gathered->communicator, kCommunicator);
  EXPECT_EQ(gathered->ranks, 0);
  EXPECT_TRUE(gathered->is_operation);
  EXPECT_EQ(gathered->bytes, 4'096);
  EXPECT_EQ(created->bytes, 0);
}

TEST_F(NcclPayloadsTest, WhatIsNoPayloadOfNcclHasNoCommunicator) {
  const std::string whole =
      Bytes(uint64_t{1}, uint64_t{16'777'220}, uint64_t{16}, uint64_t{48}, uint64_t{7}, uint64_t{4'096});
  ASSERT_TRUE(payloads_.DecodeBytes(whole).has_value());
  for (size_t size = 0; size < 40; ++size)
    EXPECT_FALSE(payloads_.DecodeBytes(whole.substr(0, size)).has_value());
  // A size that excludes the communicator, another domain, an unknown layout.
  const auto header = [](uint64_t domain, uint64_t layout, uint64_t size) {
    return Bytes(domain, layout, size, uint64_t{48}, uint64_t{7}, uint64_t{4'096});
  };
  EXPECT_FALSE(payloads_.DecodeBytes(header(1, 16'777'220, 7)).has_value());
  EXPECT_FALSE(payloads_.DecodeBytes(header(2, 16'777'220, 16)).has_value());
  EXPECT_FALSE(payloads_.DecodeBytes(header(1, 5, 16)).has_value());
  EXPECT_TRUE(payloads_.IsNccl(1));
  EXPECT_FALSE(payloads_.IsNccl(0));
  EXPECT_FALSE(payloads_.IsNccl(2));
}

TEST_F(NcclPayloadsTest, JsonHasTheSameAsNumbersOrTexts) {
  const auto sent = NcclPayloads::DecodeJson(
      R"({"NCCL communicator ID":"12,715,772,615,376,301,750","Message size [bytes]":4096})");
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->communicator, 12'715'772'615'376'301'750U);
  EXPECT_TRUE(sent->is_operation);
  const auto created =
      NcclPayloads::DecodeJson(R"({"NCCL communicator ID": 77, "No. of ranks": 8, "Rank": 3})");
  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->communicator, 77U);
  EXPECT_EQ(created->ranks, 8);
  EXPECT_FALSE(created->is_operation);
  for (const std::string_view other :
       {"", "{}", R"({"Parent NCCL communicator ID": 5})", R"({"NCCL communicator ID": null})",
        R"({"NCCL communicator ID": 99999999999999999999})", R"("NCCL communicator ID)"})
    EXPECT_FALSE(NcclPayloads::DecodeJson(other).has_value()) << other;
}

TEST(GroupOfCommunicator, CommunicatorsThatDifferInOneBitHaveDifferentNumbers) {
  for (int bit = 0; bit < 64; ++bit)
    EXPECT_NE(GroupOfCommunicator({.communicator = 0}).Number(),
              GroupOfCommunicator({.communicator = uint64_t{1} << bit}).Number());
}

}  // namespace
}  // namespace gpusonde::importers::activities
