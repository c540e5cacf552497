// SPDX-License-Identifier: Apache-2.0
#include "agent/jit_code.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace gpusonde::agent {
namespace {

constexpr int32_t kUser = 1000, kOther = 1001;

TEST(JitBudget, LimitsWhatAProcessAUserAndAllMayHold) {
  JitBudget budget({.process_bytes = 30, .user_bytes = 50, .bytes = 70});
  EXPECT_EQ(budget.RoomFor(kUser, 0), 30u);
  budget.ChangeBytes(kUser, 0, 30);
  EXPECT_EQ(budget.RoomFor(kUser, 30), 30u);
  EXPECT_EQ(budget.RoomFor(kUser, 0), 20u);
  budget.ChangeBytes(kUser, 0, 20);
  EXPECT_EQ(budget.RoomFor(kUser, 0), 0u);
  EXPECT_EQ(budget.RoomFor(kOther, 0), 20u);
  budget.ChangeBytes(kUser, 30, 10);
  EXPECT_EQ(budget.RoomFor(kUser, 10), 30u);
  EXPECT_EQ(budget.RoomFor(kOther, 0), 30u);
}

class JitCodeTest : public testing::Test {
 protected:
  ~JitCodeTest() override { ::unlink(map_.c_str()); }
  void WriteMap(const std::string& text) { ASSERT_TRUE(WriteFileAtomically(map_, text).has_value()); }
  static void AwaitNextLook() { ::usleep(250'000); }

  proc::ProcessInfo self_{
      .pid = ::getpid(), .namespace_pid = ::getpid(), .user_id = static_cast<int32_t>(::getuid())};
  const std::string map_ = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  model::DropCounts drops_;
};

TEST_F(JitCodeTest, AMapWithoutRoomIsCountedOnceAndReadWhenThereIsRoom) {
  constexpr size_t kRoom = 64 << 10;
  JitBudget budget({.process_bytes = kRoom, .user_bytes = kRoom, .bytes = kRoom});
  budget.ChangeBytes(self_.user_id, 0, kRoom);  // by another process
  WriteMap("1000 10 a\n");
  JitCode code(budget, self_.user_id);
  code.Refresh(self_, drops_);
  EXPECT_FALSE(code.Find(0x1000).has_value());
  AwaitNextLook();
  code.Refresh(self_, drops_);
  EXPECT_EQ(drops_.Of(model::DropReason::kJitCodeOmitted), 1);
  EXPECT_EQ(code.version(), 0u);

  budget.ChangeBytes(self_.user_id, kRoom, 0);
  AwaitNextLook();
  code.Refresh(self_, drops_);
  EXPECT_EQ(code.Find(0x1000).value().name, "a");
  EXPECT_EQ(code.version(), 1u);
  EXPECT_LT(budget.RoomFor(kOther, 0), kRoom);
}

TEST_F(JitCodeTest, WhatAProcessHeldIsFreeWhenItIsForgotten) {
  constexpr size_t kRoom = 64 << 10;
  JitBudget budget({.process_bytes = kRoom, .user_bytes = kRoom, .bytes = kRoom});
  WriteMap("1000 10 a\n");
  {
    JitCode code(budget, self_.user_id);
    code.Refresh(self_, drops_);
    EXPECT_TRUE(code.Find(0x1000).has_value());
    EXPECT_LT(budget.RoomFor(kOther, 0), kRoom);
  }
  EXPECT_EQ(budget.RoomFor(kOther, 0), kRoom);
}

TEST_F(JitCodeTest, AMapOfAnotherUserNamesNothing) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can give files away";
  JitBudget budget({});
  WriteMap("1000 10 a\n");
  ASSERT_EQ(::chown(map_.c_str(), 65534, 65534), 0);
  JitCode code(budget, self_.user_id);
  code.Refresh(self_, drops_);
  EXPECT_FALSE(code.Find(0x1000).has_value());

  // As this process's own, and not known yet to belong to somebody else.
  ASSERT_EQ(::chown(map_.c_str(), 0, 0), 0);
  JitCode of_root(budget, self_.user_id);
  of_root.Refresh(self_, drops_);
  EXPECT_TRUE(of_root.Find(0x1000).has_value());
}

TEST_F(JitCodeTest, ADumpThatIsNoRegularFileIsNotRead) {
  JitBudget budget({});
  const std::string fifo = "/tmp/jit-" + std::to_string(::getpid()) + ".dump";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  JitCode code(budget, self_.user_id);
  code.OpenDump(::getpid(), fifo);
  code.Refresh(self_, drops_);
  EXPECT_FALSE(code.Find(0x1000).has_value());
  ::unlink(fifo.c_str());
}

}  // namespace
}  // namespace gpusonde::agent
