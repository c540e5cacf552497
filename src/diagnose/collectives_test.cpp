// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/time.h"
#include "diagnose/collective_groups.h"
#include "diagnose/collective_hang.h"
#include "diagnose/collective_incidents.h"
#include "diagnose/straggler_detector.h"

namespace gpusonde::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kOneSecond = kNanosPerSecond;
constexpr int64_t kStart = 1'700'000'000 * kOneSecond;

Id128 ProcessOf(int32_t rank) { return IdHasher("rank").Add(static_cast<uint64_t>(rank)).Finish(); }

model::Communicator Joined(int32_t rank, int32_t ranks, const std::string& communicator = "c0") {
  return {.process = ProcessOf(rank),
          .communicator = communicator,
          .rank = rank,
          .ranks = ranks,
          .name = "world",
          .joined_ns = kStart};
}

// A call at this time after the start; begun 1 ms later, unless `begun` is false; `end_ns`: after the start.
model::Collective Called(int32_t rank, int64_t sequence, int64_t at_ns, std::optional<int64_t> end_ns,
                         bool begun = true, const std::string& communicator = "c0") {
  model::Collective row{.process = ProcessOf(rank),
                        .tid = 100 + rank,
                        .communicator = communicator,
                        .rank = rank,
                        .operation = "AllReduce",
                        .sequence = sequence,
                        .called_ns = kStart + at_ns};
  if (begun) row.begin_ns = kStart + at_ns + kNanosPerMilli;
  if (end_ns.has_value()) {
    row.end_ns = kStart + *end_ns;
    row.gpu_ns = *end_ns - at_ns;
  }
  return row;
}

std::vector<int32_t> Numbers(const std::vector<CollectiveRank>& ranks) {
  std::vector<int32_t> numbers;
  for (const CollectiveRank& rank : ranks) numbers.push_back(rank.rank);
  return numbers;
}

class CollectiveHangs : public ::testing::Test {
 protected:
  void Join(int32_t ranks, int32_t here) {
    for (int32_t rank = 0; rank < here; ++rank) groups_.Ingest(Joined(rank, ranks));
  }
  std::vector<CollectiveHang> HangsAfter(int64_t ns) {
    return FindHangs(groups_, kStart + ns, 5 * kOneSecond);
  }

  CollectiveGroups groups_;
};

TEST_F(CollectiveHangs, NamesTheRankThatHasNotCalledOnceOthersHaveWaitedForFiveSeconds) {
  Join(4, 4);
  for (int32_t rank = 0; rank < 4; ++rank) groups_.Ingest(Called(rank, 41, kOneSecond, 2 * kOneSecond));
  for (const int32_t rank : {0, 1, 3}) groups_.Ingest(Called(rank, 42, 2 * kOneSecond, std::nullopt));
  EXPECT_THAT(HangsAfter(6 * kOneSecond), IsEmpty());
  const std::vector<CollectiveHang> hangs = HangsAfter(8 * kOneSecond);
  ASSERT_THAT(hangs, SizeIs(1));
  EXPECT_EQ(hangs[0].operation, "AllReduce");
  EXPECT_EQ(hangs[0].sequence, 42);
  EXPECT_THAT(Numbers(hangs[0].waiting), ElementsAre(0, 1, 3));
  ASSERT_THAT(Numbers(hangs[0].missing), ElementsAre(2));
  EXPECT_EQ(hangs[0].missing[0].last_call, "AllReduce #41");
  EXPECT_EQ(hangs[0].elsewhere, 0);
  groups_.Ingest(Called(2, 42, 9 * kOneSecond, 9 * kOneSecond + 1));
  for (const int32_t rank : {0, 1, 3}) groups_.Ingest(Called(rank, 42, 2 * kOneSecond, 9 * kOneSecond + 1));
  EXPECT_THAT(HangsAfter(10 * kOneSecond), IsEmpty());
}

TEST_F(CollectiveHangs, AStoppedRankIsMissingInTheNextCollectiveAlthoughItsOwnEndIsUnknown) {
  Join(2, 2);
  groups_.Ingest(Called(0, 1, kOneSecond, kOneSecond + 2));
  groups_.Ingest(Called(1, 1, kOneSecond, std::nullopt));
  groups_.Ingest(Called(0, 2, 2 * kOneSecond, std::nullopt));
  const std::vector<CollectiveHang> hangs = HangsAfter(8 * kOneSecond);
  ASSERT_THAT(hangs, SizeIs(1));
  EXPECT_EQ(hangs[0].sequence, 2);
  EXPECT_THAT(Numbers(hangs[0].missing), ElementsAre(1));
}

TEST_F(CollectiveHangs, AnEndThatARecordingTellsOfHasNotHappenedBefore) {
  Join(2, 2);
  groups_.Ingest(Called(0, 1, kOneSecond, 20 * kOneSecond));
  EXPECT_THAT(HangsAfter(8 * kOneSecond), SizeIs(1));
  groups_.Ingest(Called(1, 1, 19 * kOneSecond, 20 * kOneSecond));
  EXPECT_THAT(HangsAfter(21 * kOneSecond), IsEmpty());
}

TEST_F(CollectiveHangs, ACallThatTheGpuHasNotBegunIsNotAMissingOne) {
  Join(2, 2);
  groups_.Ingest(Called(0, 1, kOneSecond, std::nullopt));
  groups_.Ingest(Called(1, 1, kOneSecond, std::nullopt, false));
  const std::vector<CollectiveHang> hangs = HangsAfter(8 * kOneSecond);
  ASSERT_THAT(hangs, SizeIs(1));
  EXPECT_THAT(hangs[0].missing, IsEmpty());
  EXPECT_THAT(Numbers(hangs[0].gpu_behind), ElementsAre(1));
}

TEST_F(CollectiveHangs, ProgramsThatAreAheadOfTheirGpuDontWait) {
  Join(2, 2);
  groups_.Ingest(Called(0, 1, kOneSecond, 2 * kOneSecond));
  groups_.Ingest(Called(0, 2, 2 * kOneSecond, std::nullopt, false));
  EXPECT_THAT(HangsAfter(60 * kOneSecond), IsEmpty());
}

TEST_F(CollectiveHangs, ARankThatWaitsInAnotherCommunicatorIsNotBlamed) {
  Join(2, 2);
  for (const int32_t rank : {1, 2}) groups_.Ingest(Joined(rank, 2, "c1"));
  groups_.Ingest(Called(0, 1, kOneSecond, std::nullopt));
  groups_.Ingest(Called(1, 7, kOneSecond, std::nullopt, true, "c1"));  // rank 1 waits for rank 2
  const std::vector<CollectiveHang> hangs = HangsAfter(8 * kOneSecond);
  ASSERT_THAT(hangs, SizeIs(2));
  std::vector<int32_t> blamed;
  for (const CollectiveHang& hang : hangs)
    for (const CollectiveRank& rank : hang.missing) blamed.push_back(rank.rank);
  EXPECT_THAT(blamed, ElementsAre(2));
}

TEST_F(CollectiveHangs, RanksOfOtherHostsAreCountedNotNamed) {
  Join(8, 2);
  for (const int32_t rank : {0, 1}) groups_.Ingest(Called(rank, 1, kOneSecond, std::nullopt));
  const std::vector<CollectiveHang> hangs = HangsAfter(8 * kOneSecond);
  ASSERT_THAT(hangs, SizeIs(1));
  EXPECT_THAT(hangs[0].missing, IsEmpty());
  EXPECT_EQ(hangs[0].elsewhere, 6);
}

TEST_F(CollectiveHangs, ALostEndHangsNothing) {
  Join(2, 2);
  for (const int32_t rank : {0, 1}) {
    groups_.Ingest(Called(rank, 1, kOneSecond, rank == 0 ? std::nullopt : std::optional(2 * kOneSecond)));
    groups_.Ingest(Called(rank, 2, 3 * kOneSecond, 4 * kOneSecond));
  }
  EXPECT_THAT(HangsAfter(60 * kOneSecond), IsEmpty());
}

TEST_F(CollectiveHangs, ARankThatHasLeftIsNotMissing) {
  Join(2, 2);
  model::Communicator left = Joined(1, 2);
  left.left_ns = kStart + 2 * kOneSecond;
  groups_.Ingest(left);
  groups_.Ingest(Called(0, 1, kOneSecond, std::nullopt));
  const std::vector<CollectiveHang> hangs = HangsAfter(8 * kOneSecond);
  ASSERT_THAT(hangs, SizeIs(1));
  EXPECT_THAT(hangs[0].missing, IsEmpty());
}

// Rounds of 100 ms in which rank `late` comes `late_ns` after the others, and all end 1 ms later.
class Rounds {
 public:
  explicit Rounds(int32_t ranks) : ranks_(ranks) {}

  template <class Target>
  void Add(Target& target, int64_t count, int32_t late, int64_t late_ns) {
    for (; count > 0; --count, ++sequence_) {
      const int64_t at_ns = sequence_ * 100 * kNanosPerMilli;
      for (int32_t rank = 0; rank < ranks_; ++rank)
        target.Ingest(Called(rank, sequence_, at_ns + (rank == late ? late_ns : 0),
                             at_ns + late_ns + 2 * kNanosPerMilli));
    }
  }
  int64_t now_ns() const { return kStart + sequence_ * 100 * kNanosPerMilli; }

 private:
  int32_t ranks_;
  int64_t sequence_ = 0;
};

TEST(Stragglers, ARankThatBeginsToComeLastIsNamed) {
  CollectiveGroups groups;
  StragglerDetector detector;
  for (int32_t rank = 0; rank < 4; ++rank) groups.Ingest(Joined(rank, 4));
  Rounds rounds(4);
  for (int second = 0; second < 10; ++second) {
    rounds.Add(groups, 10, second % 4, 2 * kNanosPerMilli);  // in turn: usual
    EXPECT_THAT(detector.Find(groups, rounds.now_ns()), IsEmpty());
  }
  std::vector<CollectiveStraggler> found;
  for (int second = 0; second < 6; ++second) {
    rounds.Add(groups, 10, 2, 60 * kNanosPerMilli);
    found = detector.Find(groups, rounds.now_ns());
  }
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].rank.rank, 2);
  EXPECT_EQ(found[0].last, found[0].collectives);
  EXPECT_NEAR(found[0].waited_ns, 60e6, 1e6);
  EXPECT_NEAR(found[0].share, 0.6, 0.05);
  EXPECT_LT(found[0].share_before, 0.05);
  for (int second = 0; second < 6; ++second) {
    rounds.Add(groups, 10, second % 4, 2 * kNanosPerMilli);
    found = detector.Find(groups, rounds.now_ns());
  }
  EXPECT_THAT(found, IsEmpty());
}

TEST(Stragglers, RanksThatComeLastInTurnAreNone) {
  CollectiveGroups groups;
  StragglerDetector detector;
  for (int32_t rank = 0; rank < 4; ++rank) groups.Ingest(Joined(rank, 4));
  Rounds rounds(4);
  for (int second = 0; second < 5; ++second) {
    rounds.Add(groups, 10, 0, kNanosPerMilli);
    EXPECT_THAT(detector.Find(groups, rounds.now_ns()), IsEmpty());
  }
  for (int round = 0; round < 100; ++round) {
    rounds.Add(groups, 1, round % 4, 60 * kNanosPerMilli);
    if (round % 10 == 9) {
      EXPECT_THAT(detector.Find(groups, rounds.now_ns()), IsEmpty());
    }
  }
}

TEST(Stragglers, WhatIsUsualIsForgottenWithTheCommunicator) {
  for (const bool forgets : {false, true}) {
    CollectiveGroups groups;
    StragglerDetector detector;
    Rounds rounds(2);
    const auto stragglers = [&](int seconds, int64_t late_ns) {
      size_t found = 0;
      for (; seconds > 0; --seconds) {
        rounds.Add(groups, 10, 1, late_ns);
        found += detector.Find(groups, rounds.now_ns()).size();
      }
      return found;
    };
    for (const int32_t rank : {0, 1}) groups.Ingest(Joined(rank, 2));
    EXPECT_EQ(stragglers(10, kNanosPerMilli), 0u);
    if (forgets) {
      groups.Forget(rounds.now_ns(), [](const Id128&) { return true; });
      EXPECT_THAT(groups.Processes(), IsEmpty());
      EXPECT_THAT(detector.Find(groups, rounds.now_ns()), IsEmpty());
      for (const int32_t rank : {0, 1}) groups.Ingest(Joined(rank, 2));
    }
    EXPECT_EQ(stragglers(4, 60 * kNanosPerMilli) == 0, forgets);
  }
}

TEST(CollectiveIncidents, AHangNamesTheRankItsProcessAndWhatItDoesAndEnds) {
  CollectiveIncidents incidents;
  HostTimeline host;
  Actors actors;
  const std::map<Id128, LastReport> none;
  for (int32_t rank = 0; rank < 2; ++rank) {
    incidents.Ingest(Joined(rank, 2));
    actors.Ingest({.process = ProcessOf(rank), .pid = 500 + rank, .name = "python", .started_ns = kStart});
  }
  host.Ingest(model::Signal{.start_ns = kStart,
                            .bucket_ns = kOneSecond,
                            .metric = "thread.running",
                            .process = ProcessOf(1),
                            .tid = 101,
                            .values = {kOneSecond / 10}});
  incidents.Ingest(Called(0, 1, 2 * kOneSecond, std::nullopt));
  std::vector<Report> reports;
  const auto emit = [&](const Report& report) { reports.push_back(report); };
  const auto advance = [&](int64_t ns) {
    incidents.Advance(kStart + ns, {.host = host, .actors = actors, .last_reports = none}, emit);
  };
  for (int64_t ns = 0; ns < 10 * kOneSecond; ns += kOneSecond / 4) advance(ns);
  ASSERT_THAT(reports, SizeIs(1)) << "an incident is reported once";
  EXPECT_EQ(reports[0].incident.cause, "hang");
  EXPECT_EQ(reports[0].incident.process, ProcessOf(1));
  EXPECT_EQ(reports[0].pid, 501);
  EXPECT_EQ(reports[0].incident.start_ns, kStart + 2 * kOneSecond + kNanosPerMilli);
  EXPECT_FALSE(reports[0].incident.end_ns.has_value());
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("1 rank waits in AllReduce #1 of communicator world (c0) of 2 ranks since"));
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("for rank 1 (python, process 501), which has not called it."));
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("None of its threads has run since"));
  incidents.Ingest(Called(1, 1, 10 * kOneSecond, 10 * kOneSecond + 1));
  incidents.Ingest(Called(0, 1, 2 * kOneSecond, 10 * kOneSecond + 1));
  advance(12 * kOneSecond);
  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_TRUE(reports[1].incident.end_ns.has_value());
  EXPECT_THAT(incidents.reports(), SizeIs(1));
}

}  // namespace
}  // namespace gpusonde::diagnose
