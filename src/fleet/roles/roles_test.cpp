// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fleet/privacy/testing/seeded.h"
#include "fleet/roles/aggregator.h"
#include "fleet/roles/beacon.h"
#include "fleet/roles/device.h"
#include "fleet/roles/draw.h"
#include "fleet/roles/message.h"
#include "fleet/roles/release.h"

namespace gpusonde::fleet {
namespace {

using privacy::KeyBytes;
using privacy::kReportSlots;
using testing::ElementsAre;
using testing::HasSubstr;

static_assert(!std::is_copy_constructible_v<SigningKey> && !std::is_copy_constructible_v<ExchangeKey> &&
              !std::is_copy_constructible_v<Device>);

constexpr uint32_t kEpoch = 77;

std::array<uint8_t, 32> Filled(uint8_t byte) {
  std::array<uint8_t, 32> bytes;
  bytes.fill(byte);
  return bytes;
}

TEST(Beacon, DependsOnAllPartsAndRejectsChangedOnes) {
  const std::vector<BeaconPart> parts = {Filled(1), Filled(2), Filled(3)};
  std::vector<Commitment> commitments;
  for (const BeaconPart& part : parts) commitments.push_back(Commit(kEpoch, part));
  const auto beacon = Reveal(kEpoch, commitments, parts);
  ASSERT_TRUE(beacon.has_value());
  EXPECT_NE(*beacon,
            *Reveal(kEpoch, std::vector<Commitment>{Commit(kEpoch, Filled(9))}, std::vector{Filled(9)}));
  auto changed = parts;
  changed[1] = Filled(7);
  EXPECT_THAT(Reveal(kEpoch, commitments, changed).error().message, HasSubstr("decryptor 1's part"));
  EXPECT_FALSE(Reveal(kEpoch + 1, commitments, parts).has_value()) << "of another epoch";
  changed.pop_back();
  EXPECT_THAT(Reveal(kEpoch, commitments, changed).error().message, HasSubstr("2 parts for 3"));
}

TEST(Draw, OnlyDrawnListsAreAnsweredFor) {
  const DrawnEpoch draw{
      .epoch = kEpoch, .beacon = Filled(4), .layout = {.groups = 1, .pages = 1, .cohorts = 2}};
  std::map<std::pair<uint32_t, uint32_t>, std::vector<privacy::ReportList::Entry>> drawn;
  for (uint64_t device = 1; device <= 100; ++device) {
    const Assignment assignment = AssignmentOf(device, kEpoch, draw.beacon, draw.layout);
    drawn[{assignment.place, assignment.cohort}].push_back({device, {}});
  }
  ASSERT_EQ(drawn.size(), 4u);
  const auto refusal = [&](uint32_t epoch, uint32_t place, const auto& entries) {
    const Status checked = CheckDraw(*privacy::ReportList::Create(epoch, place, entries), draw);
    return checked.has_value() ? "" : checked.error().message;
  };
  for (const auto& [place, entries] : drawn) EXPECT_EQ(refusal(kEpoch, place.first, entries), "");
  const auto& cohort = drawn[{1, 0}];
  EXPECT_THAT(refusal(kEpoch, 0, cohort), HasSubstr("was drawn for page 1, not for 0"));
  EXPECT_THAT(refusal(kEpoch + 8784, 1, cohort), HasSubstr("of epoch 8861, but the beacon was drawn for 77"));
  auto chosen = cohort;
  chosen.push_back(drawn[{1, 1}].front());
  EXPECT_THAT(refusal(kEpoch, 1, chosen), HasSubstr("was drawn for cohort"));
}

class Reporting : public testing::Test {
 protected:
  static constexpr uint64_t kDevices = 6;

  Reporting() {
    const ExchangeKey decryptor(Filled(200));
    for (uint8_t id = 1; id <= kDevices; ++id) {
      const ExchangeKey exchange(Filled(id));
      std::vector<privacy::MaskKey> masks;
      masks.push_back(*exchange.AsDevice(decryptor.open(), id, kEpoch));
      decryptor_keys_.push_back(*decryptor.AsDecryptor(exchange.open(), id, kEpoch));
      devices_.emplace_back(id, SigningKey(Filled(static_cast<uint8_t>(id + 100))), std::move(masks));
      EXPECT_TRUE(directory_.Add(id, devices_.back().verify_key()).has_value());
    }
  }

  Intake NewIntake() const { return {directory_, ReportKind::kMasked, kEpoch, beacon_, layout_}; }
  uint32_t PlaceOf(uint64_t device) const { return AssignmentOf(device, kEpoch, beacon_, layout_).place; }

  std::vector<uint8_t> Report(uint64_t device, uint32_t value = 5) {
    const std::vector<uint32_t> message(kReportSlots, value);
    const auto report =
        devices_[device - 1].ReportMasked(kEpoch, PlaceOf(device), privacy::Slots(message), random_);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    return {report->begin(), report->end()};
  }

  Beacon beacon_ = Filled(4);
  Layout layout_{.groups = 1, .pages = 1, .cohorts = 1};
  Directory directory_;
  std::vector<Device> devices_;
  std::vector<privacy::MaskKey> decryptor_keys_;
  privacy::Random random_ = privacy::Seeded(5);
};

TEST_F(Reporting, HeadersComeBackAndSizesAreAllTheSame) {
  const auto report = Report(3);
  EXPECT_EQ(report.size(), ReportBytes(ReportKind::kMasked));
  EXPECT_EQ(report.size(), 36u + 16'384 + 64);
  const auto header = ReadHeader(report);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->device, 3u);
  EXPECT_EQ(header->epoch, kEpoch);
  EXPECT_EQ(header->place, PlaceOf(3));
  EXPECT_TRUE(IsSigned(report, devices_[2].verify_key()));
  EXPECT_FALSE(IsSigned(report, devices_[1].verify_key()));
}

TEST_F(Reporting, EveryChangedByteIsNoticed) {
  const auto report = Report(3);
  Intake intake = NewIntake();
  for (size_t at = 0; at < report.size(); at += at < 40 || at > 16'400 ? 1 : 977) {
    auto changed = report;
    changed[at] ^= 0x40;
    EXPECT_NE(intake.Accept(changed), Verdict::kAccepted) << at;
  }
  for (const size_t length : {size_t{0}, size_t{3}, size_t{36}, report.size() - 1})
    EXPECT_EQ(intake.Accept(std::span(report).first(length)), Verdict::kMalformed) << length;
  EXPECT_TRUE(intake.gathered().empty()) << "nothing of them was added";
  EXPECT_EQ(intake.Accept(report), Verdict::kAccepted);
}

TEST_F(Reporting, AReportCountsOnce) {
  Intake intake = NewIntake();
  const auto report = Report(1);
  EXPECT_EQ(intake.Accept(report), Verdict::kAccepted);
  EXPECT_EQ(intake.Accept(report), Verdict::kDuplicate);
  EXPECT_EQ(Report(1, 99), report) << "until it is acknowledged, a device sends the same bytes";
  devices_[0].Acknowledge();
  const std::vector<uint32_t> message(kReportSlots);
  EXPECT_THAT(devices_[0].ReportMasked(kEpoch, 0, privacy::Slots(message), random_).error().message,
              HasSubstr("epoch 77 was reported for"));
  EXPECT_EQ(intake.counts()[static_cast<size_t>(Verdict::kAccepted)], 1u);
}

// Restored from a backup, it reports an epoch once more: with the same mask the difference of two reports
// would be that of their messages.
TEST_F(Reporting, ADeviceThatForgotAReportMasksTheNextAnew) {
  const ExchangeKey decryptor(Filled(200));
  std::vector<std::vector<uint32_t>> bodies;
  for (int time = 0; time < 2; ++time) {
    std::vector<privacy::MaskKey> masks;
    masks.push_back(*ExchangeKey(Filled(1)).AsDevice(decryptor.open(), 1, kEpoch));
    Device device(1, SigningKey(Filled(101)), std::move(masks));
    const std::vector<uint32_t> message(kReportSlots);
    const auto report = device.ReportMasked(kEpoch, 0, privacy::Slots(message), random_);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    bodies.push_back(SlotsOf(BodyOf(*report)));
  }
  size_t same = 0;
  for (size_t slot = 0; slot < kReportSlots; ++slot) same += bodies[0][slot] == bodies[1][slot];
  EXPECT_LT(same, 3u);
}

TEST_F(Reporting, StrangersAndOtherEpochsAndPlacesAreRejected) {
  Intake intake = NewIntake();
  directory_.Remove(2);
  EXPECT_EQ(intake.Accept(Report(2)), Verdict::kStranger);
  Intake later(directory_, ReportKind::kMasked, kEpoch + 1, beacon_, layout_);
  EXPECT_EQ(later.Accept(Report(1)), Verdict::kOtherEpoch);
  Intake other(directory_, ReportKind::kBfv, kEpoch, beacon_, layout_);
  EXPECT_EQ(other.Accept(Report(1)), Verdict::kOtherEpoch);
  const std::vector<uint32_t> message(kReportSlots);
  const auto elsewhere = devices_[2].ReportMasked(kEpoch, 1 - PlaceOf(3), privacy::Slots(message), random_);
  EXPECT_EQ(intake.Accept(*elsewhere), Verdict::kOtherPlace) << "a device can't choose";
}

TEST_F(Reporting, WorkersMergeInAnyOrderToTheSameSums) {
  std::vector<std::vector<uint8_t>> reports;
  for (uint64_t id = 1; id <= kDevices; ++id) reports.push_back(Report(id, static_cast<uint32_t>(id)));
  const auto sums = [&](const std::vector<std::vector<size_t>>& workers) {
    Intake all = NewIntake();
    for (const auto& one : workers) {
      Intake intake = NewIntake();
      for (const size_t i : one) EXPECT_EQ(intake.Accept(reports[i]), Verdict::kAccepted);
      EXPECT_TRUE(all.Merge(std::move(intake)).has_value());
    }
    std::map<Intake::Place, std::vector<uint32_t>> slots;
    for (auto& [place, gathered] : all.gathered()) {
      const auto& sum = std::get<privacy::MaskedSum>(gathered.sum);
      EXPECT_EQ(sum.reports(), gathered.entries.size());
      slots[place].assign(sum.slots().begin(), sum.slots().end());
    }
    return slots;
  };
  const auto one = sums({{0, 1, 2, 3, 4, 5}});
  EXPECT_EQ(sums({{5, 3}, {4, 0}, {1, 2}}), one);
  Intake a = NewIntake();
  Intake b = NewIntake();
  a.Accept(reports[0]);
  b.Accept(reports[0]);
  EXPECT_THAT(a.Merge(std::move(b)).error().message, HasSubstr("two workers have a report of device 1"));
}

TEST_F(Reporting, AKeyTakenAfterAReportDoesNotOpenIt) {
  Intake intake = NewIntake();
  intake.Accept(Report(1, 1000));
  // The device's keys of now, one epoch on, and the salt as sent.
  privacy::MaskKey taken = std::move(decryptor_keys_[0]);
  ASSERT_TRUE(taken.AdvanceTo(kEpoch + 1).has_value());
  EXPECT_FALSE(taken.AdvanceTo(kEpoch).has_value()) << "there is no way back";
}

TEST(Message, IsTheRowOfWhatWasFound) {
  const Layout layout{.groups = 2, .pages = 3, .cohorts = 1};
  Row row{};
  row[0] = privacy::kReportWeight;
  row[kBins] = privacy::kReportWeight;
  const auto row_of = [&](const Finding& finding, uint32_t page) {
    const auto message = MessageOf(finding, {.place = 2 * page + 1, .group = 1, .page = page}, layout, row);
    EXPECT_EQ(std::accumulate(message.begin(), message.end(), 0u), 2 * privacy::kReportWeight);
    return static_cast<uint32_t>(std::ranges::find(message, privacy::kReportWeight) - message.begin()) / 64;
  };
  EXPECT_EQ(row_of({}, 0), kIdleRow);
  EXPECT_EQ(row_of({.is_busy = true}, 0), kUnknownRow);
  EXPECT_EQ(row_of({.is_busy = true, .is_known = true, .application = 60}, 0), 60u);
  EXPECT_EQ(row_of({.is_busy = true, .is_known = true, .application = 61}, 0), kElsewhereRow);
  EXPECT_EQ(row_of({.is_busy = true, .is_known = true, .application = 61}, 1), 0u);
  EXPECT_EQ(row_of({.is_busy = true, .is_known = true, .application = 150}, 2), 28u);
  // Every page and row, of as many applications as the division is exact for.
  for (uint32_t application = 0; application < 1u << 16; application += 7) {
    const Finding finding{.is_busy = true, .is_known = true, .application = application};
    const uint32_t page = application / kApplicationsPerPage;
    const auto message = MessageOf(finding, {.place = 1, .page = page}, {.groups = 1, .pages = 2000}, row);
    ASSERT_EQ(message[size_t{64} * (application % kApplicationsPerPage)], privacy::kReportWeight)
        << application;
  }
  const auto signature = MessageOf({.is_busy = true, .signature = 9}, {.place = 6}, layout, row);
  EXPECT_EQ(signature[9], privacy::kReportWeight);
  EXPECT_EQ(std::accumulate(signature.begin(), signature.end(), 0u), privacy::kReportWeight);
}

privacy::NoisySum Honest(uint64_t reports) {
  privacy::NoisySum sum{.reports = reports, .answers = 3, .slots = std::vector<int32_t>(kReportSlots)};
  for (uint64_t i = 0; i < reports; ++i) {
    sum.slots[64 * (i % 62) + i % 63] += 255;
    sum.slots[64 * (i % 62) + 63] += 255;
  }
  return sum;
}

TEST(Balance, HoldsForHonestReportsAndNotForSpoiltOnes) {
  privacy::Random random = privacy::Seeded(8);
  constexpr uint64_t kSigma = privacy::kNoiseSigma;
  privacy::NoisySum sum = Honest(3000);
  for (int32_t& slot : sum.slots)
    slot += static_cast<int32_t>(random.Below(Uint128{2} * kSigma)) - int32_t{kSigma};
  EXPECT_TRUE(CheckBalance(sum, kSigma, false).has_value());
  privacy::NoisySum heavy = sum;
  heavy.slots[70] += 1 << 20;
  EXPECT_THAT(CheckBalance(heavy, kSigma, false).error().message, HasSubstr("slot 6 of row 1 weighs"));
  heavy.slots[70] -= 1 << 19;
  EXPECT_THAT(CheckBalance(heavy, kSigma, false).error().message, HasSubstr("row 1's bins weigh"));
  heavy.slots[127] += 1 << 19;  // a contributor slot to match: the whole is too heavy
  for (size_t row = 2; row < 12; ++row) {
    heavy.slots[64 * row] += 270'000;
    heavy.slots[64 * row + 63] += 270'000;
  }
  EXPECT_THAT(CheckBalance(heavy, kSigma, false).error().message, HasSubstr("3000 reports weigh"));
}

// Changes that leave rows and the whole in balance, or within the noise of so many slots.
TEST(Balance, NoRowHoldsMoreThanTheCohortAndNoneLessThanNobody) {
  constexpr uint64_t kSigma = privacy::kNoiseSigma;
  const auto add = [](privacy::NoisySum& sum, size_t row, int32_t devices) {
    sum.slots[64 * row] += devices * 255;
    sum.slots[64 * row + 63] += devices * 255;
  };
  privacy::NoisySum moved = Honest(1388);
  add(moved, 5, 2'000'000);
  add(moved, 9, -2'000'000);
  EXPECT_THAT(CheckBalance(moved, kSigma, false).error().message, HasSubstr("weighs"));
  privacy::NoisySum invented = Honest(1388);
  add(invented, 5, 7000);
  EXPECT_THAT(CheckBalance(invented, kSigma, false).error().message, HasSubstr("slot 0 of row 5"));
  privacy::NoisySum signatures{.reports = 1388, .answers = 3, .slots = std::vector<int32_t>(kReportSlots)};
  signatures.slots[0] = 1388 * 255;
  EXPECT_TRUE(CheckBalance(signatures, kSigma, true).has_value());
  signatures.slots[77] += 7000 * 255;
  EXPECT_FALSE(CheckBalance(signatures, kSigma, true).has_value());
}

TEST(Balance, OfSignaturesIsTheirWholeWeight) {
  privacy::NoisySum sum{.reports = 2000, .answers = 1, .slots = std::vector<int32_t>(kReportSlots)};
  sum.slots[0] = 1900 * 255;
  sum.slots[77] = 100 * 255;
  EXPECT_TRUE(CheckBalance(sum, privacy::kNoiseSigma, true).has_value());
  sum.slots[78] = 1 << 22;
  EXPECT_FALSE(CheckBalance(sum, privacy::kNoiseSigma, true).has_value());
}

TEST(Suspects, AreDevicesThatAreAlwaysInRefusedCohorts) {
  Suspects suspects;
  privacy::Random random = privacy::Seeded(2);
  std::vector<uint64_t> found;
  int windows = 0;
  for (; found.empty() && windows < 20; ++windows) {
    // 1,000 devices drawn into 20 cohorts; device 13 spoils its own.
    std::vector<std::vector<privacy::ReportList::Entry>> drawn(20);
    size_t spoilt = 0;
    for (uint64_t device = 0; device < 1000; ++device) {
      const auto cohort = static_cast<size_t>(random.Below(20));
      drawn[cohort].push_back({device, {}});
      if (device == 13) spoilt = cohort;
    }
    std::vector<privacy::ReportList> lists;
    for (auto& entries : drawn) lists.push_back(*privacy::ReportList::Create(1, 1, std::move(entries)));
    std::vector<Suspects::Cohort> window;
    for (size_t i = 0; i < lists.size(); ++i) window.push_back({&lists[i], i == spoilt});
    found = suspects.Judge(window);
  }
  EXPECT_THAT(found, ElementsAre(13));
  // 1,000 · 20^-n < 1/100 from n = 4 on.
  EXPECT_NEAR(windows, 4, 1);
}

TEST(Histograms, AddUpAndSoDoesTheirNoise) {
  Histograms histograms({.groups = 1, .pages = 1, .cohorts = 2});
  histograms.Add(0, Honest(620));
  histograms.Add(0, Honest(620));
  EXPECT_EQ(histograms.answers(0), 6u);
  EXPECT_EQ(histograms.answers(1), 0u);
  EXPECT_DOUBLE_EQ(histograms.Contributors(0, 3), 20);
  EXPECT_DOUBLE_EQ(NoiseDeviation(100, 4), 200);
  EXPECT_NEAR(ReleaseThreshold(privacy::kNoiseSigma, 3), 20 + 2.33 * 22.56, 0.1);
}

}  // namespace
}  // namespace gpusonde::fleet
