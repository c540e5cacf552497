// SPDX-License-Identifier: Apache-2.0
#include "inject/buffer_pool.h"

#include <gtest/gtest.h>

#include <set>

#include "inject/control.h"
#include "inject/sink.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {

// What the pool needs of the rest of the library.
namespace {
uint64_t g_dropped = 0;  // records
}
void CountDrop(uint32_t reason, uint64_t count) {
  if (reason == GPUSONDE_GPU_DROP_CUPTI) g_dropped += count;
}
void SetNonblocking(bool) {}
void WakeThread() {}
bool IsForkedChild() { return false; }

namespace {

// A record is a byte.
gpusonde_cupti_result NextByte(uint8_t* buffer, size_t valid_bytes, void** record) {
  uint8_t* const next = *record == nullptr ? buffer : static_cast<uint8_t*>(*record) + 1;
  if (next == buffer + valid_bytes) return GPUSONDE_CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = next;
  return GPUSONDE_CUPTI_SUCCESS;
}

class BufferPool : public ::testing::Test {
 protected:
  void SetUp() override {
    cupti_.get_next_record = NextByte;
    cupti_.version = 130000;
    BeginBuffers(cupti_, true);
    g_dropped = 0;
  }
  void TearDown() override { BeginBuffers(cupti_, true); }

  static uint8_t* Request() {
    uint8_t* bytes = nullptr;
    size_t size = 0;
    size_t records = 0;
    RequestBuffer(&bytes, &size, &records);
    return bytes;
  }
  static void Complete(uint8_t* bytes, size_t records) { CompleteBuffer(nullptr, 0, bytes, 0, records); }
  // As many buffers as there are.
  static std::set<uint8_t*> RequestAll() {
    std::set<uint8_t*> all;
    while (uint8_t* bytes = Request()) all.insert(bytes);
    return all;
  }

  Cupti cupti_{};
};

TEST_F(BufferPool, GivesEachBufferOnceUntilItIsReturned) {
  const std::set<uint8_t*> all = RequestAll();
  EXPECT_EQ(all.size(), 256U);
  Complete(*all.begin(), 3);
  EXPECT_EQ(Request(), nullptr);
  Buffer* const waiting = PopWaitingBuffer();
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->bytes, *all.begin());
  EXPECT_EQ(waiting->valid_bytes, 3U);
  ReturnBuffer(waiting);
  EXPECT_EQ(Request(), *all.begin());
}

TEST_F(BufferPool, TakesBackWhatCuptiHeldWhenItWasFinalized) {
  const size_t count = RequestAll().size();
  BeginBuffers(cupti_, false);
  EXPECT_EQ(RequestAll().size(), 0U) << "it holds them all";
  BeginBuffers(cupti_, true);
  EXPECT_EQ(RequestAll().size(), count);
}

TEST_F(BufferPool, CountsRecordsThatComeBetweenSessionsAsDropped) {
  Complete(Request(), 7);
  BeginBuffers(cupti_, false);
  EXPECT_EQ(g_dropped, 7U);
  EXPECT_EQ(PopWaitingBuffer(), nullptr);
  EXPECT_EQ(RequestAll().size(), 256U);
}

TEST_F(BufferPool, IgnoresBuffersThatCuptiDoesNotHold) {
  uint8_t* const bytes = Request();
  Complete(bytes, 1);
  Complete(bytes, 1);
  uint8_t another = 0;
  Complete(&another, 1);
  Buffer* const waiting = PopWaitingBuffer();
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(PopWaitingBuffer(), nullptr);
  ReturnBuffer(waiting);
  EXPECT_EQ(RequestAll().size(), 256U);
}

}  // namespace
}  // namespace gpusonde::inject
