// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder/hang.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/time.h"
#include "flight_recorder/print.h"

namespace gpusonde::flight_recorder {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The dumps of a job whose ranks all belong to the group "0".
struct FlightRecorderTest : testing::Test {
  std::vector<Dump> dumps;

  void StartJob(int64_t ranks) {
    std::vector<int64_t> all;
    for (int64_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
    for (int64_t rank = 0; rank < ranks; ++rank)
      dumps.push_back({.path = fmt::format("rank_{}", rank),
                       .rank = rank,
                       .version = "2.10",
                       .groups = {{"0", "default_pg", all}},
                       .entries = {}});
  }
  void AddGroup(const std::string& name, const std::vector<int64_t>& ranks) {
    for (const int64_t rank : ranks)
      dumps[static_cast<size_t>(rank)].groups.push_back({name, "tensor parallel", ranks});
  }
  Entry& Call(int64_t rank, int64_t sequence, State state, const std::string& group = "0",
              const std::string& operation = "all_reduce") {
    std::vector<Entry>& entries = dumps[static_cast<size_t>(rank)].entries;
    entries.push_back(
        {.record = static_cast<int64_t>(entries.size()),
         .group = group,
         .operation = operation,
         .point_to_point = operation.starts_with("send") || operation.starts_with("recv"),
         .sequence = sequence,
         .state = state,
         .called_ns = 1'700'000'000'000'000'000 + sequence * 1'000'000'000,
         .input_sizes = {{1024, 8}},
         .input_types = {"Float"},
         .frames = {{"all_reduce", "/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py", 9},
                    {"step", "train.py", 88}}});
    return entries.back();
  }
  Hang Find() {
    auto hang = FindHang(dumps);
    EXPECT_TRUE(hang.has_value());
    return hang.value_or(Hang{});
  }
  std::vector<int64_t> SuspectsBecause(const Hang& hang, Why why) {
    std::vector<int64_t> ranks;
    for (const Suspect& suspect : hang.suspects)
      if (suspect.why == why) ranks.push_back(suspect.rank);
    return ranks;
  }
};

TEST_F(FlightRecorderTest, ARankThatDidNotCallIsToBlame) {
  StartJob(8);
  for (int64_t rank = 0; rank < 8; ++rank) {
    Call(rank, 41, State::kCompleted);
    if (rank != 3) Call(rank, 42, State::kScheduled);
  }
  const Hang hang = Find();
  ASSERT_EQ(hang.suspects.size(), 1u);
  EXPECT_EQ(hang.suspects[0].rank, 3);
  EXPECT_EQ(hang.suspects[0].why, Why::kNotCalled);
  ASSERT_EQ(hang.pending.size(), 1u);
  EXPECT_EQ(hang.pending[0].sequence, 42);
  EXPECT_EQ(hang.pending[0].waiting.size(), 7u);
  const std::string text = FormatText(dumps, hang);
  EXPECT_THAT(
      text,
      HasSubstr("Rank 3 keeps 7 ranks waiting: it has not called all_reduce #42 of group 0 (default_pg)"));
  EXPECT_THAT(text, HasSubstr("Its last call was all_reduce #41 of group 0 (completed) at 2023-11-14"));
  EXPECT_THAT(text, HasSubstr("from train.py:88 (step)")) << "PyTorch's own frames are left out";
  EXPECT_THAT(text, HasSubstr("ranks 0-2, 4-7 wait in it; rank 3 did not call it"));
}

TEST_F(FlightRecorderTest, NobodyIsToBlameIfAllCompleted) {
  StartJob(4);
  for (int64_t rank = 0; rank < 4; ++rank) Call(rank, 7, State::kCompleted);
  const Hang hang = Find();
  EXPECT_THAT(hang.pending, IsEmpty());
  EXPECT_THAT(hang.suspects, IsEmpty());
  EXPECT_THAT(FormatText(dumps, hang), HasSubstr("Nothing is pending"));
}

// The ring of a rank that is ahead no longer has what it completed long ago; a new group has no calls yet.
TEST_F(FlightRecorderTest, WhatARingNoLongerHoldsWasCompleted) {
  StartJob(2);
  Call(0, 1000, State::kScheduled);
  Call(1, 5000, State::kCompleted);
  const Hang hang = Find();
  EXPECT_THAT(hang.suspects, IsEmpty());
  EXPECT_EQ(hang.pending.at(0).completed.at(0).rank, 1);
}

TEST_F(FlightRecorderTest, ARankWithoutDumpIsToBlame) {
  StartJob(4);
  for (int64_t rank = 0; rank < 4; ++rank) Call(rank, 5, State::kStarted);
  dumps.erase(dumps.begin() + 2);
  const Hang hang = Find();
  EXPECT_THAT(SuspectsBecause(hang, Why::kNoDump), ElementsAre(2));
  EXPECT_EQ(hang.suspects.size(), 1u);
  EXPECT_THAT(FormatText(dumps, hang), HasSubstr("Rank 2 left no dump, and 3 ranks wait for it"));
}

TEST_F(FlightRecorderTest, AnotherCallOrOtherSizesAreToBlame) {
  StartJob(4);
  for (int64_t rank = 0; rank < 4; ++rank)
    Call(rank, 5, State::kScheduled, "0", rank == 1 ? "broadcast" : "all_reduce");
  EXPECT_THAT(SuspectsBecause(Find(), Why::kDifferent), ElementsAre(1));
  dumps[1].entries[0].operation = "all_reduce";
  dumps[3].entries[0].input_sizes = {{512, 8}};
  const Hang hang = Find();
  EXPECT_THAT(SuspectsBecause(hang, Why::kDifferent), ElementsAre(3));
  EXPECT_THAT(FormatText(dumps, hang),
              HasSubstr("Rank 3 called all_reduce [512, 8] Float, from train.py:88 (step) as #5"));
  // The shapes may differ where the number of elements is the same.
  dumps[3].entries[0].input_sizes = {{8192}};
  EXPECT_THAT(Find().suspects, IsEmpty());
}

TEST_F(FlightRecorderTest, UnevenInputsOfAllToAllAreNoMismatch) {
  StartJob(2);
  Call(0, 5, State::kScheduled, "0", "all_to_all");
  Call(1, 5, State::kScheduled, "0", "all_to_all").input_sizes = {{1}};
  EXPECT_THAT(Find().suspects, IsEmpty());
}

TEST_F(FlightRecorderTest, AllInMeansTheNetworkOrAGpu) {
  StartJob(4);
  for (int64_t rank = 0; rank < 4; ++rank) Call(rank, 5, State::kScheduled);
  EXPECT_THAT(Find().suspects, IsEmpty());
  EXPECT_THAT(FormatText(dumps, Find()), HasSubstr("no rank is late"));
  for (const int64_t rank : {0, 1, 3}) dumps[static_cast<size_t>(rank)].entries[0].state = State::kStarted;
  EXPECT_THAT(SuspectsBecause(Find(), Why::kGpuBehind), ElementsAre(2));
}

// Ranks 0 and 1 are a tensor-parallel group, as are 2 and 3. Rank 3 is stuck; rank 2 waits for it, and so is
// missing in the collective of all, where 0 and 1 wait.
TEST_F(FlightRecorderTest, AMissingRankThatWaitsElsewhereIsFollowed) {
  StartJob(4);
  AddGroup("5", {0, 1});
  AddGroup("6", {2, 3});
  for (const int64_t rank : {0, 1}) {
    Call(rank, 9, State::kCompleted, "5");
    Call(rank, 42, State::kScheduled);
  }
  Call(2, 9, State::kScheduled, "6");
  Call(3, 41, State::kCompleted);
  const Hang hang = Find();
  ASSERT_EQ(hang.pending.size(), 2u);
  ASSERT_EQ(hang.suspects.size(), 1u) << "named once, though missing in both operations";
  EXPECT_EQ(hang.suspects[0].rank, 3);
  EXPECT_EQ(hang.pending[hang.suspects[0].pending].group.name, "0") << "where most wait";
}

// Rank 0 calls "a" before "b", rank 1 the other way round.
TEST_F(FlightRecorderTest, ACircleIsADeadlock) {
  StartJob(2);
  AddGroup("5", {0, 1});
  Call(0, 1, State::kScheduled, "0");
  Call(1, 1, State::kScheduled, "5");
  const Hang hang = Find();
  EXPECT_THAT(SuspectsBecause(hang, Why::kDeadlock), ElementsAre(0, 1));
  EXPECT_THAT(FormatText(dumps, hang), HasSubstr("a deadlock"));
}

TEST_F(FlightRecorderTest, GroupsOfOneNameAndOtherRanksAreApart) {
  StartJob(4);
  for (const int64_t rank : {0, 1}) dumps[static_cast<size_t>(rank)].groups.push_back({"7", "split", {0, 1}});
  for (const int64_t rank : {2, 3}) dumps[static_cast<size_t>(rank)].groups.push_back({"7", "split", {2, 3}});
  for (const int64_t rank : {0, 1}) Call(rank, 3, State::kCompleted, "7");
  Call(2, 3, State::kScheduled, "7");
  EXPECT_THAT(SuspectsBecause(Find(), Why::kNotCalled), ElementsAre(3));
}

TEST_F(FlightRecorderTest, AReceiverWithoutSenderNamesTheSender) {
  StartJob(4);
  for (int64_t rank = 0; rank < 4; ++rank) Call(rank, 1, State::kCompleted);
  Call(2, 9, State::kScheduled, "0", "recv 2<-1");
  const Hang hang = Find();
  EXPECT_THAT(SuspectsBecause(hang, Why::kNotCalled), ElementsAre(1));
  EXPECT_TRUE(hang.pending.at(0).point_to_point);
  Call(1, 4, State::kScheduled, "0", "send 1->2");
  EXPECT_THAT(Find().suspects, IsEmpty()) << "both are in it";
}

// The entries of a coalesced group of transfers have no states of their own; the last one has.
TEST_F(FlightRecorderTest, CoalescedOperationsHaveTheStateOfTheLastEntry) {
  StartJob(2);
  for (const int64_t rank : {0, 1}) {
    Call(rank, 3, State::kScheduled, "0", rank == 0 ? "send 0->1" : "recv 1<-0");
    Entry& last = Call(rank, 3, State::kCompleted, "0", "coalesced");
    last.point_to_point = true;
  }
  EXPECT_THAT(Find().pending, IsEmpty());
}

TEST_F(FlightRecorderTest, TheRankThatComesLastIsTheOneThatNeverWaits) {
  StartJob(4);
  for (int64_t sequence = 0; sequence < 30; ++sequence)
    for (int64_t rank = 0; rank < 4; ++rank)
      Call(rank, sequence, State::kCompleted).duration_ms =
          rank == 2 && sequence % 3 != 0 ? 0.5 : 20.5 + static_cast<double>(rank);
  const Hang hang = Find();
  ASSERT_EQ(hang.stragglers.size(), 1u);
  EXPECT_EQ(hang.stragglers[0].rank, 2);
  EXPECT_EQ(hang.stragglers[0].last, 20);
  EXPECT_NEAR(hang.stragglers[0].waited_ms, (20 + 21 + 23) / 3., 1e-9);
}

TEST_F(FlightRecorderTest, ChanceMakesNoStraggler) {
  StartJob(4);
  for (int64_t sequence = 0; sequence < 40; ++sequence)
    for (int64_t rank = 0; rank < 4; ++rank)
      Call(rank, sequence, State::kCompleted).duration_ms = (rank + sequence) % 4 == 0 ? 1 : 20;
  EXPECT_THAT(Find().stragglers, IsEmpty());
  EXPECT_EQ(Find().timed, 40);
}

TEST_F(FlightRecorderTest, TwoDumpsOfOneRankAreRefused) {
  StartJob(2);
  dumps[1].rank = 0;
  EXPECT_FALSE(FindHang(dumps).has_value());
}

// Without the group's ranks, a rank whose dump isn't given may be the one that is late.
TEST_F(FlightRecorderTest, OfAGroupOfUnknownRanksNotAllAreKnownToBeInIt) {
  StartJob(2);
  for (Dump& dump : dumps) dump.groups.clear();
  for (const int64_t rank : {0, 1}) Call(rank, 5, State::kScheduled);
  const Hang hang = Find();
  ASSERT_EQ(hang.pending.size(), 1u);
  EXPECT_FALSE(hang.pending[0].ranks_known);
  const std::string text = FormatText(dumps, hang);
  EXPECT_THAT(text, HasSubstr("The dumps don't say which ranks it has: give those of all ranks"));
  EXPECT_THAT(text, testing::Not(HasSubstr("no rank is late")));
}

// The group has ranks 4 to 7 of the job, of which 5 has called nothing in it.
TEST_F(FlightRecorderTest, InAGroupOfUnknownRanksOneThatSendsToASilentRankBlamesNobodyElse) {
  StartJob(8);
  for (Dump& dump : dumps) dump.groups.clear();
  Call(4, 9, State::kScheduled, "3", "send 0->1");
  Call(6, 7, State::kCompleted, "3", "send 2->3");
  Call(7, 7, State::kCompleted, "3", "recv 3<-2");
  const Hang hang = Find();
  EXPECT_THAT(hang.suspects, IsEmpty());
  ASSERT_EQ(hang.pending.size(), 1u);
  EXPECT_FALSE(hang.pending[0].ranks_known);
  EXPECT_THAT(FormatText(dumps, hang), HasSubstr("The dumps don't say which ranks it has"));
}

TEST_F(FlightRecorderTest, InAGroupOfUnknownRanksARankIsKnownByItsOwnCalls) {
  StartJob(8);
  for (Dump& dump : dumps) dump.groups.clear();
  Call(4, 9, State::kScheduled, "3", "send 0->3");
  Call(7, 7, State::kCompleted, "3", "recv 3<-2");
  EXPECT_THAT(SuspectsBecause(Find(), Why::kNotCalled), ElementsAre(7));
  Call(7, 8, State::kScheduled, "3", "recv 3<-0");
  EXPECT_THAT(Find().suspects, IsEmpty()) << "both are in it";
  // A rank of another group with this name.
  Call(1, 9, State::kScheduled, "3", "send 0->1");
  Call(3, 9, State::kCompleted, "3", "send 3->1");
  EXPECT_THAT(Find().suspects, IsEmpty()) << "3 or 7";
}

// A file that was renamed: the collectives are those of another rank.
TEST_F(FlightRecorderTest, ADumpOfARankOutsideItsGroupIsRefused) {
  StartJob(2);
  Call(1, 5, State::kScheduled);
  dumps[1].rank = 100;
  const auto hang = FindHang(dumps);
  ASSERT_FALSE(hang.has_value());
  EXPECT_THAT(hang.error().message,
              HasSubstr("rank_1: by the number at the end of its name it is of rank 100"));
  dumps[1].entries.clear();
  EXPECT_TRUE(FindHang(dumps).has_value()) << "it only knows the group";
}

TEST_F(FlightRecorderTest, RanksWithoutDumpsShareASentence) {
  StartJob(6);
  for (int64_t rank = 0; rank < 6; ++rank) Call(rank, 5, State::kStarted);
  dumps.resize(1);
  const Hang hang = Find();
  EXPECT_THAT(SuspectsBecause(hang, Why::kNoDump), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(FormatText(dumps, hang), HasSubstr("\nRanks 1-5 left no dump, and 1 rank waits for them in"));
}

TEST_F(FlightRecorderTest, ElementsBeyondAnyTensorAreAMismatch) {
  StartJob(3);
  for (int64_t rank = 0; rank < 3; ++rank) Call(rank, 5, State::kScheduled);
  // Their sum is 2^64 more than what the others have.
  constexpr int64_t kQuarter = int64_t{1} << 62;
  dumps[1].entries[0].input_sizes = {{kQuarter}, {kQuarter}, {kQuarter}, {kQuarter}, {8192}};
  EXPECT_THAT(SuspectsBecause(Find(), Why::kDifferent), ElementsAre(1));
}

// A dump of a few MB can have so many.
TEST_F(FlightRecorderTest, ManyGroupsAreNotSearchedForEachCall) {
  StartJob(1);
  constexpr int kGroups = 100'000;
  for (int i = 0; i < kGroups; ++i) {
    AddGroup(fmt::format("group {}", i), {0});
    Call(0, 1, State::kCompleted, fmt::format("group {}", kGroups - 1 - i)).frames.clear();
  }
  const int64_t begin_ns = MonotonicNow();
  EXPECT_THAT(Find().pending, IsEmpty());
  EXPECT_LT(MonotonicNow() - begin_ns, 20 * kNanosPerSecond);
}

}  // namespace
}  // namespace gpusonde::flight_recorder
