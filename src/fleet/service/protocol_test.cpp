// SPDX-License-Identifier: Apache-2.0
// A whole fleet in one process: the aggregator, decryptors and devices, through several epochs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/testing/temp_folder.h"
#include "fleet/service/release_file.h"
#include "fleet/service/testing/fleet.h"

namespace gpusonde::fleet {
namespace {

using testing::KeyOf;
using testing::kPeriodS;
using testing::LocalBoard;
using testing::SmallFleet;

constexpr uint32_t kFirst = 1000;

Work WorkOf(size_t device) {
  Work work{.finding = {.is_busy = true, .is_known = true, .application = static_cast<uint32_t>(device % 2)},
            .rows = {}};
  Bins bins{};
  bins[1 + device % 2] = 1;
  work.rows.push_back(RoundToReport(bins));
  return work;
}

// The services, each of which can be killed and started again.
class FleetTest : public ::testing::Test {
 protected:
  static constexpr size_t kDecryptors = 3;

  void Start(size_t devices) {
    fleet_ = SmallFleet(kDecryptors);
    StartBoard();
    client_ = std::make_unique<LocalBoard>(*board_, now_ms_);
    decryptors_.resize(kDecryptors);
    for (size_t i = 0; i < kDecryptors; ++i) StartDecryptor(i);
    devices_.resize(devices);
    const SigningKey authority = testing::AuthorityKey();
    for (size_t i = 0; i < devices; ++i) {
      const Ticket ticket = MakeTicket(fleet_.Id(), authority);
      ASSERT_TRUE(WriteTicket(TicketPath(i), ticket).has_value());
      StartDevice(i);
    }
  }

  std::string TicketPath(size_t number) const { return fmt::format("{}/ticket-{}", folder_.path(), number); }

  void StartBoard() {
    board_.reset();
    auto opened = Board::Open(fleet_, folder_.path() + "/board");
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    board_ = *std::move(opened);
    if (client_ != nullptr) client_->Use(*board_);
  }
  void StartDecryptor(size_t number) {
    decryptors_[number].reset();
    auto opened = DecryptorService::Open(fleet_, KeyOf(static_cast<uint8_t>(1 + number)),
                                         fmt::format("{}/decryptor-{}", folder_.path(), number), now_ms_);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    decryptors_[number].emplace(*std::move(opened));
  }
  void StartDevice(size_t number) {
    devices_[number].reset();
    auto ticket = ReadTicket(TicketPath(number));
    ASSERT_TRUE(ticket.has_value()) << ticket.error().message;
    auto opened =
        DeviceService::Open(fleet_, *std::move(ticket), fmt::format("{}/device-{}", folder_.path(), number));
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    devices_[number].emplace(*std::move(opened));
  }

  // A step of all, whose errors are only those of the network.
  void StepAll() {
    Expect(board_->Tick(now_ms_));
    for (auto& decryptor : decryptors_)
      if (decryptor.has_value()) Expect(decryptor->Step(*client_, now_ms_));
    for (size_t i = 0; i < devices_.size(); ++i)
      Expect(
          devices_[i]->Step(*client_, [&](int64_t, int64_t) -> Result<Work> { return WorkOf(i); }, now_ms_));
    now_ms_ += step_ms_;
  }
  static void Expect(const Status& status) {
    if (!status.has_value()) {
      EXPECT_EQ(status.error().code, ErrorCode::kUnavailable) << status.error().message;
    }
  }
  void StepUntil(uint32_t epoch) {
    while (now_ms_ < Schedule(kPeriodS).BeginMs(epoch) && !HasFailure()) StepAll();
  }

  Release ReleaseOf(uint32_t epoch) {
    const auto read = ReadRelease(board_->releases_folder(), epoch);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return read.value_or(Release());
  }
  // Contributors of an application in the sums of an epoch.
  static double Contributors(const Release& release, const Description& fleet, uint32_t row) {
    Histograms sums(fleet.layout());
    for (const Release::List& list : release.lists)
      if (list.outcome == Outcome::kReleased)
        sums.Add(list.place, {.reports = list.reports, .answers = list.answers, .slots = list.slots});
    return sums.Contributors(0, row);
  }

  TempFolder folder_;
  Description fleet_;
  int64_t step_ms_ = 4000;
  int64_t now_ms_ = Schedule(kPeriodS).BeginMs(kFirst);
  std::unique_ptr<Board> board_;
  std::unique_ptr<LocalBoard> client_;
  std::vector<std::optional<DecryptorService>> decryptors_;
  std::vector<std::optional<DeviceService>> devices_;
};

TEST_F(FleetTest, ReleasesWhatTheDevicesDid) {
  Start(40);
  StepUntil(kFirst + 4);
  const Release release = ReleaseOf(kFirst + 1);
  EXPECT_EQ(release.devices, 40u);
  EXPECT_EQ(release.verdicts[static_cast<size_t>(Verdict::kAccepted)], 40u);
  uint64_t reports = 0;
  for (const Release::List& list : release.lists) {
    EXPECT_EQ(list.outcome, Outcome::kReleased);
    EXPECT_EQ(list.answers, kDecryptors);
    reports += list.reports;
  }
  EXPECT_EQ(reports, 40u);
  // About half of the devices were drawn for the place of signatures.
  const double one = Contributors(release, fleet_, 0), two = Contributors(release, fleet_, 1);
  uint64_t drawn = 0;
  for (const Release::List& list : release.lists)
    if (list.place == 0) drawn += list.reports;
  EXPECT_NEAR(one + two, static_cast<double>(drawn), 0.1);
  EXPECT_GT(one, 1);
  EXPECT_GT(two, 1);
}

TEST_F(FleetTest, LosesNothingOnABadNetworkAndWithEveryProcessKilled) {
  Start(12);
  // So many steps that each epoch's succeed all the same.
  step_ms_ = 1000;
  client_->Lose(0.1);
  std::mt19937 random(7);
  while (now_ms_ < Schedule(kPeriodS).BeginMs(kFirst + 5) && !HasFailure()) {
    StepAll();
    if (random() % 8 == 0) StartBoard();
    if (random() % 4 == 0) StartDecryptor(random() % kDecryptors);
    if (random() % 2 == 0) StartDevice(random() % devices_.size());
  }
  for (const uint32_t epoch : {kFirst + 2, kFirst + 3}) {
    const Release release = ReleaseOf(epoch);
    EXPECT_EQ(release.devices, 12u);
    uint64_t reports = 0;
    for (const Release::List& list : release.lists) {
      reports += list.reports;
      EXPECT_EQ(list.outcome, Outcome::kReleased) << epoch;
    }
    // Those of a place and cohort with a single one are not released.
    EXPECT_EQ(reports + release.lists_too_small, release.verdicts[static_cast<size_t>(Verdict::kAccepted)])
        << epoch;
    EXPECT_GE(reports, 6u) << epoch;
  }
}

TEST_F(FleetTest, ADecryptorThatIsAwayCostsItsEpochOnly) {
  Start(12);
  StepUntil(kFirst + 2);
  decryptors_[1].reset();
  StepUntil(kFirst + 3);
  StartDecryptor(1);
  StepUntil(kFirst + 6);
  for (const Release::List& list : ReleaseOf(kFirst + 1).lists) EXPECT_EQ(list.outcome, Outcome::kUnanswered);
  for (const Release::List& list : ReleaseOf(kFirst + 4).lists) EXPECT_EQ(list.outcome, Outcome::kReleased);
}

TEST_F(FleetTest, DevicesThatComeLaterReportFromTheirFirstEpoch) {
  Start(12);
  StepUntil(kFirst + 2);
  devices_.emplace_back();
  ASSERT_TRUE(WriteTicket(TicketPath(12), MakeTicket(fleet_.Id(), testing::AuthorityKey())).has_value());
  StartDevice(12);
  StepUntil(kFirst + 6);
  EXPECT_EQ(ReleaseOf(kFirst + 1).devices, 13u);  // enrolled, but not yet there
  EXPECT_EQ(ReleaseOf(kFirst + 1).verdicts[0], 12u);
  EXPECT_EQ(ReleaseOf(kFirst + 3).verdicts[0], 13u);
}

}  // namespace
}  // namespace gpusonde::fleet
