// SPDX-License-Identifier: Apache-2.0
#include "agent/merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

namespace gpusonde::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

perf::SidebandEvent Map(int64_t time_ns, std::string path) {
  return {time_ns, perf::MapEvent{.pid = 1, .path = std::move(path)}};
}
perf::SidebandEvent Exec(int64_t time_ns, int32_t pid) {
  return {time_ns, perf::CommEvent{.pid = pid, .tid = pid, .exec = true, .name = "new"}};
}
ebpf::OffCpuEnd End(uint64_t time_ns) { return {.tid = 7, .end_ns = time_ns}; }

class MergerTest : public testing::Test {
 protected:
  // Ingests an event whose stack and texts are gone afterwards, as those of sources are.
  void Sample(int64_t time_ns, std::vector<uint64_t> stack = {}) {
    merger_.Ingest(ebpf::RawSample{.time_ns = time_ns, .stack = StackOf(stack)});
    std::ranges::fill(stack, 0xdead);
  }
  void Begin(uint64_t time_ns, std::vector<uint64_t> stack = {}) {
    merger_.Ingest(ebpf::OffCpuBegin{.taken_ns = time_ns, .stack = StackOf(stack)});
    std::ranges::fill(stack, 0xdead);
  }
  void Call(int64_t time_ns, std::string name, std::vector<uint64_t> stack) {
    merger_.Ingest(
        cupti::Event{.stack = StackOf(stack),
                     .stack_taken = true,
                     .what = cupti::Call{.end_ns = time_ns, .domain = "cuda_runtime", .name = name}});
    std::ranges::fill(name, '#');
    std::ranges::fill(stack, 0xdead);
  }

  // The events up to then, in the order of the visit.
  std::vector<std::string> Drained(int64_t until_ns) {
    std::vector<std::string> drained;
    const auto words = [](const ebpf::RawStack& stack) {
      std::string text;
      for (const uint64_t address : stack.user()) text += " " + std::to_string(address);
      return text;
    };
    merger_.Drain(
        until_ns,
        sources::VisitOnly(
            [&](const ebpf::RawSample& sample) {
              drained.push_back("sample " + std::to_string(sample.time_ns) + words(sample.stack));
            },
            [&](const ebpf::OffCpuBegin& begin) {
              drained.push_back("begin " + std::to_string(begin.taken_ns) + words(begin.stack));
            },
            [&](const ebpf::OffCpuEnd& end) { drained.push_back("end " + std::to_string(end.end_ns)); },
            [&](const perf::SidebandEvent& event) {
              const auto* map = std::get_if<perf::MapEvent>(&event.what);
              drained.push_back(map != nullptr ? map->path : "exec " + std::to_string(event.time_ns));
            },
            [&](const cupti::Event& event) {
              const auto& call = std::get<cupti::Call>(event.what);
              drained.push_back(std::string(call.domain) + "." + std::string(call.name) + words(event.stack));
            }));
    return drained;
  }

  Merger merger_;

 private:
  static ebpf::RawStack StackOf(const std::vector<uint64_t>& words) {
    return {{.user_frames = static_cast<uint16_t>(words.size())}, words};
  }
};

TEST_F(MergerTest, EventsOfAllSourcesComeInTheOrderOfTime) {
  Sample(10), Sample(30), Sample(50);
  Begin(20);
  merger_.Ingest(End(40));
  merger_.Ingest(Map(5, "libc")), merger_.Ingest(Map(35, "libcuda"));
  EXPECT_THAT(Drained(kAll),
              ElementsAre("libc", "sample 10", "begin 20", "sample 30", "libcuda", "end 40", "sample 50"));
  EXPECT_THAT(Drained(kAll), IsEmpty()) << "nothing comes twice";
}

// A file is mapped before code in it runs, and a thread leaves its CPU before it returns.
TEST_F(MergerTest, OfTheSameTimeMappingsComeFirstAndEndsLast) {
  merger_.Ingest(End(10));
  Sample(10);
  Begin(10);
  merger_.Ingest(Map(10, "libc"));
  EXPECT_THAT(Drained(kAll), ElementsAre("libc", "sample 10", "begin 10", "end 10"));
}

TEST_F(MergerTest, EventsOfTheSameKindAndTimeKeepTheirOrder) {
  Sample(10, {1}), Sample(10, {2}), Sample(10, {3});
  EXPECT_THAT(Drained(kAll), ElementsAre("sample 10 1", "sample 10 2", "sample 10 3"));
}

TEST_F(MergerTest, LaterEventsWaitWithTheirStacksAndTexts) {
  Call(30, "cudaLaunchKernel", {7, 8, 9});
  Sample(40, {4});
  Sample(10, {1, 2});
  merger_.Ingest(Map(31, "libcuda"));
  EXPECT_THAT(Drained(29), ElementsAre("sample 10 1 2"));
  // An earlier event may still arrive, as buffers are read one after the other.
  Sample(20, {5, 6});
  EXPECT_THAT(Drained(30), ElementsAre("sample 20 5 6", "cuda_runtime.cudaLaunchKernel 7 8 9"));
  EXPECT_THAT(Drained(30), IsEmpty());
  EXPECT_THAT(Drained(40), ElementsAre("libcuda", "sample 40 4"));
}

TEST_F(MergerTest, AGraphNodeIsMergedByItsCreation) {
  Sample(10), Sample(20);
  merger_.Ingest(cupti::Event{.stack_taken = true, .what = cupti::GraphNode{.node = 3, .created_ns = 15}});
  std::vector<int64_t> order;
  merger_.Drain(kAll,
                sources::VisitOnly([&](const ebpf::RawSample& sample) { order.push_back(sample.time_ns); },
                                   [&](const cupti::Event& event) {
                                     order.push_back(std::get<cupti::GraphNode>(event.what).created_ns);
                                   }));
  EXPECT_THAT(order, ElementsAre(10, 15, 20));
}

TEST_F(MergerTest, TheForkOfAProcessIsKnownUntilItHasBeenDrained) {
  const auto fork = [](int64_t time_ns, int32_t pid, int32_t tid, int32_t parent_pid) {
    return perf::SidebandEvent{time_ns, perf::ForkEvent{pid, tid, parent_pid, parent_pid}};
  };
  merger_.Ingest(fork(10, 5, 5, 1));
  merger_.Ingest(fork(20, 6, 7, 6));
  ASSERT_NE(merger_.ForkOf(5), nullptr);
  EXPECT_EQ(merger_.ForkOf(5)->time_ns, 10);
  EXPECT_EQ(std::get<perf::ForkEvent>(merger_.ForkOf(5)->what).parent_pid, 1);
  EXPECT_EQ(merger_.ForkOf(6), nullptr) << "a new thread";
  merger_.Drain(9, [](sources::Event&&) {});
  EXPECT_NE(merger_.ForkOf(5), nullptr);
  merger_.Drain(10, [](sources::Event&&) {});
  EXPECT_EQ(merger_.ForkOf(5), nullptr);
}

TEST_F(MergerTest, AnExecReplacesItsProcessUntilItHasBeenDrained) {
  merger_.Ingest(Exec(10, 1)), merger_.Ingest(Exec(20, 1));
  EXPECT_TRUE(merger_.IsReplacedAfter(1, 5));
  EXPECT_TRUE(merger_.IsReplacedAfter(1, 19));
  EXPECT_FALSE(merger_.IsReplacedAfter(1, 20)) << "the sample is of the new program";
  EXPECT_FALSE(merger_.IsReplacedAfter(2, 5));
  EXPECT_THAT(Drained(15), ElementsAre("exec 10"));
  EXPECT_TRUE(merger_.IsReplacedAfter(1, 15));
  EXPECT_THAT(Drained(20), ElementsAre("exec 20"));
  EXPECT_FALSE(merger_.IsReplacedAfter(1, 5));
}

TEST_F(MergerTest, AnExecThatWaitsIsKnownToTheVisit) {
  merger_.Ingest(Exec(20, 1));
  Sample(10), Sample(30);
  std::vector<bool> replaced;
  merger_.Drain(kAll, sources::VisitOnly([&](const ebpf::RawSample& sample) {
                  replaced.push_back(merger_.IsReplacedAfter(1, sample.time_ns));
                }));
  EXPECT_THAT(replaced, ElementsAre(true, false));
}

}  // namespace
}  // namespace gpusonde::agent
