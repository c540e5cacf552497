// SPDX-License-Identifier: Apache-2.0
#include "server/shared_read.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stop_token>
#include <thread>

namespace gpusonde::server {
namespace {

class SharedReadTest : public testing::Test {
 protected:
  static model::Selection From(int64_t from_ns) { return {.from_ns = from_ns, .filter = ""}; }
  int Read(uint64_t revision, int64_t from_ns) {
    return shared_
        .Read(revision, From(from_ns),
              [&]() -> Result<int> {
                ++reads_;
                return next_;
              })
        .value_or(-1);
  }

  int next_ = 1;
  int reads_ = 0;
  SharedRead<int> shared_{[](const int& read) { return read < 100; }};
};

TEST_F(SharedReadTest, TheSameIsReadOnceInARevision) {
  EXPECT_EQ(Read(7, 0), 1);
  next_ = 2;
  EXPECT_EQ(Read(7, 0), 1);
  EXPECT_EQ(Read(7, 5), 2) << "another selection";
  EXPECT_EQ(Read(8, 0), 2) << "a new revision";
  EXPECT_EQ(reads_, 3);
}

TEST_F(SharedReadTest, WhatIsLargeAndTheOldestOfManyAreReadAgain) {
  next_ = 100;
  EXPECT_EQ(Read(7, 0), 100);
  EXPECT_EQ(Read(7, 0), 100);
  EXPECT_EQ(reads_, 2);
  next_ = 1;
  for (int64_t from_ns = 1; from_ns <= 5; ++from_ns) Read(7, from_ns);
  EXPECT_EQ(reads_, 7);
  Read(7, 2);
  EXPECT_EQ(reads_, 7);
  Read(7, 1);
  EXPECT_EQ(reads_, 8);
}

TEST_F(SharedReadTest, AnErrorIsNotKept) {
  const auto fail = []() -> Result<int> { return Fail(ErrorCode::kUnavailable, "stopped"); };
  EXPECT_EQ(shared_.Read(7, From(0), fail).error().message, "stopped");
  EXPECT_EQ(Read(7, 0), 1);
}

TEST_F(SharedReadTest, AnExceptionIsNotKept) {
  const auto fail = []() -> Result<int> { throw std::bad_alloc(); };
  EXPECT_THROW((void)shared_.Read(7, From(0), fail), std::bad_alloc);
  EXPECT_EQ(Read(7, 0), 1);
}

TEST_F(SharedReadTest, WhoAsksMeanwhileReadsIfTheFirstIsCancelled) {
  std::atomic<bool> asked = false;
  std::jthread second;
  int got = 0;
  std::stop_source gone;
  const Cancellation cancellation(gone.get_token());
  const Result<int> first = shared_.Read(7, From(0), [&]() -> Result<int> {
    second = std::jthread([&] {
      asked = true;
      got = Read(7, 0);
    });
    while (!asked) std::this_thread::yield();
    gone.request_stop();
    return Fail(ErrorCode::kUnavailable, "interrupted");
  });
  second.join();
  EXPECT_FALSE(first.has_value());
  EXPECT_EQ(got, 1);
  EXPECT_EQ(reads_, 1);
}

TEST_F(SharedReadTest, WhoAsksMeanwhileGetsWhatIsBeingRead) {
  std::atomic<bool> asked = false;
  std::jthread second;
  int got = 0;
  const Result<int> first = shared_.Read(7, From(0), [&]() -> Result<int> {
    second = std::jthread([&] {
      asked = true;
      got = Read(7, 0);
    });
    while (!asked) std::this_thread::yield();
    return 42;
  });
  second.join();
  EXPECT_EQ(first.value_or(-1), 42);
  EXPECT_EQ(got, 42);
  EXPECT_EQ(reads_, 0);
}

}  // namespace
}  // namespace gpusonde::server
