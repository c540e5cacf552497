// SPDX-License-Identifier: Apache-2.0
#include "importers/collectives.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/id128.h"
#include "base/testing/temp_folder.h"
#include "model/tables/collectives.h"
#include "model/tables/communicators.h"
#include "store/recordings/recording.h"

namespace gpusonde::importers {
namespace {

TEST(WholeMessage, IsWhatAllRanksGetOrPutInTogether) {
  EXPECT_EQ(WholeMessage(Operation::kAllReduce, 1'000, 8), 1'000);
  EXPECT_EQ(WholeMessage(Operation::kBroadcast, 1'000, 0), 1'000);
  EXPECT_EQ(WholeMessage(Operation::kAllGather, 1'000, 8), 8'000);
  EXPECT_EQ(WholeMessage(Operation::kReduceScatter, 1'000, 8), 8'000);
  EXPECT_EQ(WholeMessage(Operation::kAllGather, 1'000, 0), 0);
  EXPECT_EQ(WholeMessage(Operation::kAllGather, Message::kMaxBytes, 2), 0);
  EXPECT_EQ(WholeMessage(Operation::kAllGather, INT64_MAX, 2), 0);
  EXPECT_EQ(WholeMessage(Operation::kAllReduce, -1, 8), 0);
  EXPECT_EQ(WholeMessage(Operation::kUnknown, 1'000, 8), 0);
}

struct Row {
  std::string operation = "AllGather";
  std::optional<int64_t> bytes = 1'000;
  std::optional<int64_t> gpu_ns;
  std::optional<int64_t> begin_ns = 2'000;
  std::optional<int64_t> end_ns = 7'000;
};

// A recording of rank 1 of two with one collective, as the agent writes it.
Result<ReportedCollectives> Read(const Row& row) {
  const TempFolder folder;
  const std::string path = folder / "collectives.sonde";
  const Id128 process = IdHasher("test").Add(uint64_t{1}).Finish();
  const auto write = [&](const store::BatchSink& sink) -> Status {
    model::BatchBuilder communicators(model::kCommunicators);
    communicators.Append({.process = process,
                          .communicator = "00000000deadbeef",
                          .rank = 1,
                          .ranks = 2,
                          .nodes = 1,
                          .name = "",
                          .joined_ns = 500,
                          .left_ns = std::nullopt,
                          .dropped = 3,
                          .plugin_version = 5});
    TRY(sink(communicators.Take()));
    model::BatchBuilder collectives(model::kCollectives);
    collectives.Append({.process = process,
                        .tid = 7,
                        .communicator = "00000000deadbeef",
                        .rank = 1,
                        .operation = row.operation,
                        .sequence = 4,
                        .called_ns = 1'000,
                        .enqueued_ns = 1'500,
                        .begin_ns = row.begin_ns,
                        .end_ns = row.end_ns,
                        .gpu_ns = row.gpu_ns,
                        .count = 1'000,
                        .datatype = "ncclInt8",
                        .bytes = row.bytes,
                        .root = 0,
                        .algorithm = "RING",
                        .protocol = "SIMPLE",
                        .channels = 2});
    return sink(collectives.Take());
  };
  TRY(store::WriteRecording(path, {}, write));
  return ReadReportedCollectives(path, TraceFormat::kSonde);
}

TEST(ReadReportedCollectives, ARecordingHasThemWithTheirGroups) {
  const auto read = Read({.gpu_ns = 4'200});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->ended.size(), 1u);
  const ReportedCollective& one = read->ended.front();
  EXPECT_EQ(one.operation, Operation::kAllGather);
  EXPECT_EQ(one.sequence, 4);
  EXPECT_EQ(one.rank, 1);
  EXPECT_EQ(one.bytes, 2'000);
  EXPECT_EQ(one.time_ns, 4'200);
  ASSERT_TRUE(read->groups.contains(one.group));
  EXPECT_EQ(read->groups.at(one.group).ranks, 2);
  EXPECT_EQ(read->groups.at(one.group).label, "communicator 00000000deadbeef");
  EXPECT_EQ(read->lost, 3);
  EXPECT_EQ(read->invalid, 0);
}

TEST(ReadReportedCollectives, WithoutTheGpusClockTheTimesThatNcclSawCount) {
  const auto read = Read({});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->ended.size(), 1u);
  EXPECT_EQ(read->ended.front().time_ns, 5'000);
}

TEST(ReadReportedCollectives, WhatHasNotEndedIsNotThere) {
  const auto read = Read({.end_ns = std::nullopt});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_TRUE(read->ended.empty());
  EXPECT_EQ(read->invalid, 0);
}

TEST(ReadReportedCollectives, ThoseWithoutASizeOrTimeAreCounted) {
  for (const Row& row :
       {Row{.bytes = std::nullopt}, Row{.bytes = -1}, Row{.operation = "Barrier"}, Row{.gpu_ns = -1},
        Row{.begin_ns = std::nullopt}, Row{.end_ns = 1}, Row{.begin_ns = INT64_MIN, .end_ns = INT64_MAX}}) {
    const auto read = Read(row);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_TRUE(read->ended.empty());
    EXPECT_EQ(read->invalid, 1);
  }
}

TEST(ReadReportedCollectives, OtherFormatsHaveNone) {
  const auto read = ReadReportedCollectives("no such file", TraceFormat::kKinetoJson);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->ended.empty());
}

}  // namespace
}  // namespace gpusonde::importers
