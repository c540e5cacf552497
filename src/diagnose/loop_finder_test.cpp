// SPDX-License-Identifier: Apache-2.0
#include "diagnose/loop_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr int32_t kSession = 1;

Stream StreamAt(int64_t number) { return {.device = {0, 1}, .context = 1, .stream = number}; }

// A thread that launches the same kernels to its stream again and again, and waits for them.
struct Worker {
  int32_t tid;
  Stream stream;
  int64_t period_ns;
  int kernels = 3;
  std::string_view name = "gemm";
  bool is_sampled = true;
};

class LoopFinderTest : public ::testing::Test {
 protected:
  // `extra_every`: rounds have up to so many kernels more, as requests of any size.
  void Run(const Worker& worker, int rounds, int extra_every = 0) {
    for (int round = 0; round < rounds; ++round) {
      const int64_t end_ns = (round + 1) * worker.period_ns;
      const int kernels = worker.kernels + (extra_every > 0 ? round % extra_every : 0);
      for (int i = 0; i < kernels; ++i) {
        const int64_t correlation = ++correlation_;
        if (worker.is_sampled) finder_.IngestCall(kSession, correlation, worker.tid);
        Ingest(worker.stream, Work::Kind::kKernel, worker.name, end_ns - kNanosPerMilli, correlation);
      }
      Ingest(worker.stream, Work::Kind::kSync, "stream", end_ns, -1);
    }
  }
  void Ingest(const Stream& on, Work::Kind kind, std::string_view name, int64_t end_ns, int64_t correlation) {
    const WorkTime time{end_ns, 1'000};
    finder_.Ingest(on, {.kind = kind, .name = name}, {&time, 1}, kSession, {&correlation, 1});
  }
  // A copy to its stream that another thread makes.
  void Launch(int32_t tid, const Stream& on, int times) {
    for (int i = 0; i < times; ++i) {
      const int64_t correlation = ++correlation_;
      finder_.IngestCall(kSession, correlation, tid);
      Ingest(on, Work::Kind::kCopy, "htod", i * kNanosPerMilli, correlation);
    }
  }

  LoopFinder finder_;
  int64_t correlation_ = 0;
};

TEST_F(LoopFinderTest, FindsALearnerAndItsActorInThreadsAndStreamsOfTheirOwn) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 50 * kNanosPerMilli, .kernels = 20}, 20);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli}, 140);
  const auto loops = finder_.Find();
  ASSERT_TRUE(loops.has_value());
  ASSERT_THAT(*loops, SizeIs(2));
  EXPECT_THAT((*loops)[0].threads, ElementsAre(10));
  EXPECT_THAT((*loops)[0].streams, ElementsAre(StreamAt(13)));
  EXPECT_THAT((*loops)[1].threads, ElementsAre(11));
  EXPECT_THAT((*loops)[1].streams, ElementsAre(StreamAt(14)));
}

TEST_F(LoopFinderTest, OneThreadIsOneLoopHoweverManyStreamsItWaitsFor) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 50 * kNanosPerMilli, .kernels = 20}, 20);
  Run({.tid = 10, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli}, 140);
  EXPECT_THAT(finder_.Find(), ::testing::Optional(IsEmpty()));
}

TEST_F(LoopFinderTest, ThreadsThatLaunchToOneStreamAreOneLoop) {
  // As PyTorch's thread of backward passes does.
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 50 * kNanosPerMilli, .kernels = 20}, 20);
  Run({.tid = 11, .stream = StreamAt(13), .period_ns = 50 * kNanosPerMilli, .kernels = 30}, 20);
  Run({.tid = 12, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli}, 140);
  const std::vector<Loop> loops = finder_.FindAtEnd();
  ASSERT_THAT(loops, SizeIs(2));
  EXPECT_THAT(loops[0].threads, ElementsAre(10, 11));
}

TEST_F(LoopFinderTest, AThreadThatLaunchesToTheStreamsOfTwoJoinsThem) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 50 * kNanosPerMilli, .kernels = 20}, 20);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 20 * kNanosPerMilli, .kernels = 10}, 50);
  Run({.tid = 12, .stream = StreamAt(15), .period_ns = 7 * kNanosPerMilli}, 140);
  ASSERT_THAT(finder_.FindAtEnd(), SizeIs(3));
  Launch(9, StreamAt(13), 100);
  Launch(9, StreamAt(14), 100);
  const std::vector<Loop> loops = finder_.FindAtEnd();
  ASSERT_THAT(loops, SizeIs(2));
  EXPECT_THAT(loops[0].threads, ElementsAre(9, 10, 11));
  EXPECT_THAT(loops[0].streams, ElementsAre(StreamAt(13), StreamAt(14)));
}

TEST_F(LoopFinderTest, AnyNumberOfThreadsMayShareAStream) {
  for (int32_t tid = 20; tid < 60; ++tid) Launch(tid, StreamAt(13), 1);
  for (int i = 1; i <= 20; ++i) {
    Ingest(StreamAt(13), Work::Kind::kKernel, "gemm", int64_t{50} * i * kNanosPerMilli, -1);
    Ingest(StreamAt(13), Work::Kind::kSync, "stream", int64_t{50} * i * kNanosPerMilli, -1);
  }
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli}, 140);
  const std::vector<Loop> loops = finder_.FindAtEnd();
  ASSERT_THAT(loops, SizeIs(2));
  EXPECT_THAT(loops[1].threads, SizeIs(40));
}

TEST_F(LoopFinderTest, AThreadThatOnlyPreparedAStreamIsNotOfItsLoop) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 50 * kNanosPerMilli, .kernels = 20}, 20);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli}, 140);
  Launch(10, StreamAt(14), 5);
  EXPECT_THAT(finder_.FindAtEnd(), SizeIs(2));
}

TEST_F(LoopFinderTest, ThreadsOfAPoolThatDoTheSameAreOneLoop) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 9 * kNanosPerMilli}, 20);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli}, 60);
  EXPECT_THAT(finder_.Find(), ::testing::Optional(IsEmpty()));
}

TEST_F(LoopFinderTest, ThreadsOfAPoolWithRequestsOfAnySizeAreOneLoop) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 9 * kNanosPerMilli}, 20, 7);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli}, 60, 8);
  EXPECT_THAT(finder_.Find(), ::testing::Optional(IsEmpty()));
}

TEST_F(LoopFinderTest, ModelsOfAServerAreLoopsOfTheirOwn) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 9 * kNanosPerMilli, .name = "conv"}, 20, 7);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli, .name = "gemm"}, 60, 8);
  Run({.tid = 12, .stream = StreamAt(15), .period_ns = 7 * kNanosPerMilli, .name = "gemm"}, 44, 8);
  const std::vector<Loop> loops = finder_.FindAtEnd();
  ASSERT_THAT(loops, SizeIs(2));
  EXPECT_THAT(loops[1].threads, ElementsAre(11, 12));
  EXPECT_THAT(loops[1].streams, UnorderedElementsAre(StreamAt(14), StreamAt(15)));
}

TEST_F(LoopFinderTest, StagesThatKeepPaceAreOneLoop) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 20 * kNanosPerMilli, .name = "decode"}, 50);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 20 * kNanosPerMilli, .kernels = 40}, 49);
  EXPECT_THAT(finder_.Find(), ::testing::Optional(IsEmpty()));
}

TEST_F(LoopFinderTest, WaitsForWorkThatMayBeOfAnotherThread) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 50 * kNanosPerMilli, .kernels = 20}, 20);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli, .is_sampled = false}, 140);
  EXPECT_EQ(finder_.Find(), std::nullopt);
  EXPECT_THAT(finder_.FindAtEnd(), IsEmpty());
}

TEST_F(LoopFinderTest, WaitsForEightRoundsOfEachAndIsContentWithFourAtTheEnd) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 500 * kNanosPerMilli, .kernels = 20}, 6);
  Run({.tid = 11, .stream = StreamAt(14), .period_ns = 7 * kNanosPerMilli}, 400);
  EXPECT_EQ(finder_.Find(), std::nullopt);
  EXPECT_THAT(finder_.FindAtEnd(), SizeIs(2));
}

TEST_F(LoopFinderTest, AThreadThatOnlyCopiesIsNoLoop) {
  Run({.tid = 10, .stream = StreamAt(13), .period_ns = 50 * kNanosPerMilli, .kernels = 20}, 20);
  for (int i = 0; i < 100; ++i) {
    Launch(11, StreamAt(14), 1);
    Ingest(StreamAt(14), Work::Kind::kSync, "stream", int64_t{i} * 7 * kNanosPerMilli, -1);
  }
  EXPECT_THAT(finder_.Find(), ::testing::Optional(IsEmpty()));
}

}  // namespace
}  // namespace gpusonde::diagnose
