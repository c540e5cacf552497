// SPDX-License-Identifier: Apache-2.0
#include "simgpu/timeline/sm_schedule.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace simgpu {
namespace {

constexpr int32_t kSms = 100;

std::unique_ptr<SmSchedule> Empty() {
  auto schedule = std::make_unique<SmSchedule>();
  schedule->Clear(0);
  return schedule;
}

TEST(SmSchedule, KernelsOfOneProcessShareTheSms) {
  const auto schedule = Empty();
  EXPECT_EQ(schedule->Place(10, 100, 60, kSms, 1), 10);
  EXPECT_EQ(schedule->Place(10, 100, 40, kSms, 1), 10);  // fits beside the first
  EXPECT_EQ(schedule->Place(10, 100, 1, kSms, 1), 110);  // nothing is left
  EXPECT_EQ(schedule->Place(10, 50, 50, kSms, 1), 110);  // beside that one
}

TEST(SmSchedule, TwoProcessesTakeTurns) {
  const auto schedule = Empty();
  EXPECT_EQ(schedule->Place(0, 100, 1, kSms, 1), 0);
  EXPECT_EQ(schedule->Place(0, 100, 1, kSms, 2), 100);
}

TEST(SmSchedule, AKernelMayRunInAGapThatIsLongEnough) {
  const auto schedule = Empty();
  EXPECT_EQ(schedule->Place(0, 10, kSms, kSms, 1), 0);
  EXPECT_EQ(schedule->Place(50, 10, kSms, kSms, 1), 50);
  EXPECT_EQ(schedule->Place(0, 40, kSms, kSms, 1), 10);
  EXPECT_EQ(schedule->Place(0, 1, kSms, kSms, 1), 60);
}

TEST(SmSchedule, AccountsForPastSegmentsOnceAndInOrder) {
  const auto schedule = Empty();
  schedule->Place(10, 100, 30, kSms, 1);
  schedule->Place(60, 100, 30, kSms, 1);
  int64_t sm_ns = 0;
  int64_t last_ns = 0;
  for (const int64_t now_ns : {5, 70, 71, 400}) {
    schedule->Retire(now_ns, [&](int64_t start_ns, int64_t end_ns, const SmSchedule::Segment& segment) {
      EXPECT_EQ(start_ns, last_ns);
      last_ns = end_ns;
      sm_ns += (end_ns - start_ns) * segment.sms;
    });
    EXPECT_EQ(last_ns, now_ns);
  }
  EXPECT_EQ(sm_ns, 2 * 100 * 30);
}

TEST(SmSchedule, CancellingAProcessLeavesTheOthersWork) {
  const auto schedule = Empty();
  schedule->Place(0, 100, kSms, kSms, 1);
  schedule->Place(0, 100, kSms, kSms, 2);
  schedule->Place(0, 100, kSms, kSms, 1);
  schedule->Cancel(1);
  EXPECT_TRUE(schedule->Valid(kSms));
  EXPECT_EQ(schedule->Place(0, 100, kSms, kSms, 3), 0);
  EXPECT_EQ(schedule->Place(0, 100, kSms, kSms, 3), 200);
}

TEST(SmSchedule, CancellingFreesSms) {
  const auto schedule = Empty();
  for (int64_t i = 0; schedule->Place(20 * i, 10, 1, kSms, 1).has_value();) ++i;
  schedule->Cancel(1);
  EXPECT_EQ(schedule->NextEnd(), std::nullopt);
  EXPECT_EQ(schedule->Place(0, 10, kSms, kSms, 2), 0);
}

TEST(SmSchedule, AFullScheduleReportsItAndHasRoomAgainLater) {
  const auto schedule = Empty();
  int64_t placed = 0;
  while (schedule->Place(20 * placed, 10, 1, kSms, 1).has_value()) ++placed;
  EXPECT_GT(placed, 1000);
  EXPECT_EQ(schedule->NextEnd(), 10);
  schedule->Retire(1000, [](int64_t, int64_t, const SmSchedule::Segment&) {});
  EXPECT_TRUE(schedule->Place(20 * placed, 10, 1, kSms, 1).has_value());
}

// Compared with a simple reference model.
TEST(SmSchedule, NeverOverlapsProcessesNorTakesMoreSmsThanThereAre) {
  std::mt19937 random(1);
  const auto schedule = Empty();
  constexpr int64_t kHorizonNs = 20'000;
  std::vector<int32_t> sms(kHorizonNs, 0);
  std::vector<uint32_t> owners(kHorizonNs, 0);
  int64_t now_ns = 0;
  for (int i = 0; i < 600; ++i) {
    const auto duration_ns = static_cast<int64_t>(1 + random() % 40);
    const auto need = static_cast<int32_t>(1 + random() % kSms);
    const auto owner = static_cast<uint32_t>(1 + random() % 3);
    const int64_t ready_ns = now_ns + static_cast<int64_t>(random() % 50);
    const auto start_ns = schedule->Place(ready_ns, duration_ns, need, kSms, owner);
    ASSERT_TRUE(start_ns.has_value());
    ASSERT_GE(*start_ns, ready_ns);
    ASSERT_LT(*start_ns + duration_ns, kHorizonNs);
    for (int64_t t = *start_ns; t < *start_ns + duration_ns; ++t) {
      const auto at = static_cast<size_t>(t);
      ASSERT_TRUE(owners[at] == 0 || owners[at] == owner);
      owners[at] = owner;
      sms[at] += need;
      ASSERT_LE(sms[at], kSms);
    }
    ASSERT_TRUE(schedule->Valid(kSms));
    if (random() % 4 == 0) {
      now_ns += static_cast<int64_t>(random() % 30);
      schedule->Retire(now_ns, [](int64_t, int64_t, const SmSchedule::Segment&) {});
    }
  }
}

}  // namespace
}  // namespace simgpu
