// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/temp_folder.h"
#include "fleet/roles/beacon.h"
#include "fleet/roles/message.h"
#include "fleet/service/keys.h"
#include "fleet/service/testing/fleet.h"

namespace gpusonde::fleet {
namespace {

using testing::KeyOf;

constexpr uint32_t kEpoch = 500;

class BoardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Board::Open(fleet_, folder_.path() + "/board");
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    board_ = *std::move(opened);
  }

  static int64_t In(uint32_t epoch) { return Schedule(testing::kPeriodS).BeginMs(epoch) + 1; }
  Bytes NoticeOf(NoticeKind kind, uint32_t epoch, uint8_t decryptor,
                 const std::array<uint8_t, 32>& payload) const {
    return MakeNotice({.kind = kind,
                       .epoch = epoch,
                       .sender = decryptor,
                       .item = 0,
                       .payload = {payload.begin(), payload.end()}},
                      fleet_.Id(), KeyOf(1 + decryptor));
  }
  ErrorCode Refusal(const Bytes& notice, int64_t now_ms) {
    const Status posted = board_->PostNotice(notice, now_ms);
    EXPECT_FALSE(posted.has_value());
    return posted.has_value() ? ErrorCode::kInternal : posted.error().code;
  }
  Bytes EnrolmentNotice(const Ticket& ticket, uint32_t epoch) const {
    const SigningKey key(privacy::KeyBytes(ticket.seed.values()));
    return MakeNotice({.kind = NoticeKind::kEnrolment,
                       .epoch = epoch,
                       .sender = ticket.device,
                       .item = 0,
                       .payload = BytesOf(Enrolment{.key = key.open(), .admission = ticket.signature})},
                      fleet_.Id(), key);
  }
  void OfferExchanges(uint32_t epoch) {
    for (const uint8_t i : std::array<uint8_t, 2>{0, 1})
      ASSERT_TRUE(
          board_->PostNotice(NoticeOf(NoticeKind::kExchange, epoch, i, {i}), In(epoch - 1)).has_value());
  }

  TempFolder folder_;
  Description fleet_ = testing::SmallFleet(2);
  std::unique_ptr<Board> board_;
};

TEST_F(BoardTest, TakesANoticeOnlyInItsTime) {
  const Bytes exchange = NoticeOf(NoticeKind::kExchange, kEpoch, 0, {});
  EXPECT_EQ(Refusal(exchange, In(kEpoch - 2)), ErrorCode::kNotFound);
  EXPECT_EQ(Refusal(exchange, In(kEpoch)), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(board_->PostNotice(exchange, In(kEpoch - 1)).has_value());
  // The same again, at any time: its sender may not have got the answer.
  EXPECT_TRUE(board_->PostNotice(exchange, In(kEpoch)).has_value());
  EXPECT_EQ(Refusal(NoticeOf(NoticeKind::kExchange, kEpoch, 0, {1}), In(kEpoch - 1)),
            ErrorCode::kInvalidArgument);
}

TEST_F(BoardTest, TakesNoPartBeforeAllHaveCommitted) {
  const BeaconPart part{7};
  const Bytes reveal = NoticeOf(NoticeKind::kPart, kEpoch, 0, part);
  ASSERT_TRUE(
      board_->PostNotice(NoticeOf(NoticeKind::kCommitment, kEpoch, 0, Commit(kEpoch, part)), In(kEpoch))
          .has_value());
  EXPECT_EQ(Refusal(reveal, In(kEpoch)), ErrorCode::kNotFound);
  ASSERT_TRUE(board_->PostNotice(NoticeOf(NoticeKind::kCommitment, kEpoch, 1, {}), In(kEpoch)).has_value());
  EXPECT_TRUE(board_->PostNotice(reveal, In(kEpoch)).has_value());
  // Another part than it committed to.
  EXPECT_EQ(Refusal(NoticeOf(NoticeKind::kPart, kEpoch, 1, {}), In(kEpoch)), ErrorCode::kInvalidArgument);
}

TEST_F(BoardTest, RefusesNoticesOfOthers) {
  Bytes forged = NoticeOf(NoticeKind::kExchange, kEpoch, 0, {});
  forged.back() ^= 1;
  EXPECT_EQ(Refusal(forged, In(kEpoch - 1)), ErrorCode::kInvalidArgument);
  const Bytes others = MakeNotice(
      {.kind = NoticeKind::kExchange, .epoch = kEpoch, .sender = 0, .item = 0, .payload = Bytes(32)},
      FleetId{}, KeyOf(1));
  EXPECT_EQ(Refusal(others, In(kEpoch - 1)), ErrorCode::kInvalidArgument);
  const Bytes of_nobody = MakeNotice(
      {.kind = NoticeKind::kExchange, .epoch = kEpoch, .sender = 2, .item = 0, .payload = Bytes(32)},
      fleet_.Id(), KeyOf(1));
  EXPECT_EQ(Refusal(of_nobody, In(kEpoch - 1)), ErrorCode::kInvalidArgument);
  for (size_t bytes = 0; bytes < forged.size(); bytes += 7)
    EXPECT_EQ(Refusal(Bytes(forged.begin(), forged.begin() + static_cast<ptrdiff_t>(bytes)), In(kEpoch - 1)),
              ErrorCode::kInvalidArgument);
}

// Before its signature is looked at, as that takes longest.
TEST_F(BoardTest, RefusesAPartOfADecryptorThatThereIsNot) {
  for (const uint8_t i : std::array<uint8_t, 2>{0, 1})
    ASSERT_TRUE(
        board_->PostNotice(NoticeOf(NoticeKind::kCommitment, kEpoch, i, {i}), In(kEpoch)).has_value());
  EXPECT_EQ(Refusal(NoticeOf(NoticeKind::kPart, kEpoch, 2, {}), In(kEpoch)), ErrorCode::kInvalidArgument);
}

TEST_F(BoardTest, EnrolsHoldersOfTicketsWhileItIsTheirTime) {
  const Ticket ticket = MakeTicket(fleet_.Id(), testing::AuthorityKey());
  const Bytes enrolment = EnrolmentNotice(ticket, kEpoch);
  EXPECT_EQ(Refusal(enrolment, In(kEpoch - 1)), ErrorCode::kNotFound);  // the decryptors don't take any yet
  OfferExchanges(kEpoch);
  EXPECT_EQ(Refusal(EnrolmentNotice(MakeTicket(fleet_.Id(), KeyOf(98)), kEpoch), In(kEpoch - 1)),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(board_->PostNotice(enrolment, In(kEpoch - 1)).has_value());
  EXPECT_EQ(board_->Enrolments(kEpoch, In(kEpoch - 1)).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(board_->Enrolments(kEpoch, In(kEpoch)).value(), ::testing::ElementsAre(enrolment));
  // Whether the answer was lost or not.
  EXPECT_TRUE(board_->PostNotice(enrolment, In(kEpoch)).has_value());
  EXPECT_EQ(Refusal(EnrolmentNotice(MakeTicket(fleet_.Id(), testing::AuthorityKey()), kEpoch), In(kEpoch)),
            ErrorCode::kInvalidArgument);
}

TEST_F(BoardTest, OneProcessHasAFolderOfOneFleet) {
  EXPECT_EQ(Board::Open(fleet_, folder_.path() + "/board").error().code, ErrorCode::kUnavailable);
  board_.reset();
  EXPECT_EQ(Board::Open(testing::SmallFleet(3), folder_.path() + "/board").error().code,
            ErrorCode::kInvalidArgument);
}

// An aggregator whose releases are late has taken reports of the second epoch after by then: of a device that
// it expels now, too.
class LateBoardTest : public BoardTest {
 protected:
  static constexpr uint8_t kDevices = 8;
  static constexpr int64_t kMinute = 60'000;  // after which no more reports are taken

  void EnrolAll() {
    OfferExchanges(kEpoch);
    for (uint8_t i = 0; i < kDevices; ++i)
      ASSERT_TRUE(
          board_->PostNotice(EnrolmentNotice(testing::TicketOf(fleet_.Id(), i), kEpoch), In(kEpoch - 1))
              .has_value());
  }
  // A beacon, and reports of all, of which the first device's can't be true.
  void DrawAndReport(uint32_t epoch) {
    std::vector<Commitment> commitments;
    const std::vector<BeaconPart> parts{{1}, {2}};
    for (const BeaconPart& part : parts) commitments.push_back(Commit(epoch, part));
    for (const uint8_t i : std::array<uint8_t, 2>{0, 1})
      ASSERT_TRUE(board_->PostNotice(NoticeOf(NoticeKind::kCommitment, epoch, i, commitments[i]), In(epoch))
                      .has_value());
    for (const uint8_t i : std::array<uint8_t, 2>{0, 1})
      ASSERT_TRUE(board_->PostNotice(NoticeOf(NoticeKind::kPart, epoch, i, parts[i]), In(epoch)).has_value());
    const Beacon beacon = Reveal(epoch, commitments, parts).value();
    for (uint8_t i = 0; i < kDevices; ++i) {
      const Ticket ticket = testing::TicketOf(fleet_.Id(), i);
      const Assignment drawn = AssignmentOf(ticket.device, epoch, beacon, fleet_.layout());
      std::vector<uint32_t> slots = MessageOf({}, drawn, fleet_.layout(), RoundToReport({}));
      if (i == 0) slots[0] = 100'000;
      const Bytes report =
          MakeReport({.epoch = epoch, .place = drawn.place, .device = ticket.device},
                     BytesOf(privacy::Slots(slots)), SigningKey(privacy::KeyBytes(ticket.seed.values())));
      const auto verdict = board_->PostReport(report, In(epoch + 1));
      ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
      if (i == 0) verdict_of_first_ = *verdict;
    }
  }
  // Without noise.
  void AnswerLists(uint32_t epoch) {
    const std::vector<ListedReports> lists = board_->Lists(epoch).value();
    for (uint32_t item = 0; item < lists.size(); ++item) {
      const auto list = privacy::ReportList::Create(epoch, lists[item].place, lists[item].entries);
      Bytes payload(kAnswerBytes);
      std::ranges::copy(list->hash(), payload.begin());
      for (const uint8_t i : std::array<uint8_t, 2>{0, 1})
        ASSERT_TRUE(board_
                        ->PostNotice(MakeNotice({.kind = NoticeKind::kAnswer,
                                                 .epoch = epoch,
                                                 .sender = i,
                                                 .item = item,
                                                 .payload = payload},
                                                fleet_.Id(), KeyOf(1 + i)),
                                     In(epoch + 1) + kMinute)
                        .has_value());
    }
  }
  // Each expulsion makes the file longer.
  uintmax_t MembersBytes() const {
    uintmax_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "board/members"))
      bytes += file.file_size();
    return bytes;
  }
  void Restart() {
    board_.reset();
    auto opened = Board::Open(fleet_, folder_.path() + "/board");
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    board_ = *std::move(opened);
  }

  std::string verdict_of_first_;
};

TEST_F(LateBoardTest, ContinuesWithReportsOfADeviceThatIsExpelledLater) {
  EnrolAll();
  const uintmax_t members = MembersBytes();
  uint32_t epoch = kEpoch;
  for (; MembersBytes() == members && epoch < kEpoch + 200 && !HasFailure(); epoch += 4) {
    DrawAndReport(epoch);
    ASSERT_TRUE(board_->Tick(In(epoch + 1) + kMinute).has_value());
    AnswerLists(epoch);
    // The next Tick comes two epochs later.
    DrawAndReport(epoch + 2);
    EXPECT_EQ(verdict_of_first_, "accepted");
    ASSERT_TRUE(board_->Tick(In(epoch + 3)).has_value());
  }
  Restart();
  if (HasFailure()) return;
  DrawAndReport(epoch);
  EXPECT_EQ(verdict_of_first_, "stranger");
}

TEST_F(BoardTest, TakesNoReportBeforeTheBeaconIsDrawn) {
  EXPECT_EQ(board_->PostReport(Bytes(10), In(kEpoch)).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace gpusonde::fleet
