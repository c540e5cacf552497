// SPDX-License-Identifier: Apache-2.0
#include "convert/span_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convert/name_store.h"
#include "model/batch_rows.h"

namespace gpusonde::convert {
namespace {

using importers::Span;
using importers::SpanKind;
using testing::ElementsAre;

TEST(FrameNameOf, LeavesOutWhatDiffersFromRunToRun) {
  EXPECT_EQ(FrameNameOf(SpanKind::kAnnotation, "ProfilerStep#551").name, "ProfilerStep");
  EXPECT_EQ(FrameNameOf(SpanKind::kAnnotation, "#7").name, "#7");
  EXPECT_EQ(FrameNameOf(SpanKind::kNvtxPushPop, "aten::mm, seq = 12, op_id = 34").name, "aten::mm");
  EXPECT_EQ(FrameNameOf(SpanKind::kNvtxPushPop, "layer 12").name, "layer 12");
  EXPECT_EQ(FrameNameOf(SpanKind::kCall, "cudaLaunchKernel_v7000").name, "cudaLaunchKernel");
  EXPECT_EQ(FrameNameOf(SpanKind::kCall, "cuMemAlloc_v2").name, "cuMemAlloc_v2");
  EXPECT_EQ(FrameNameOf(SpanKind::kPython, "<built-in method run of PyCapsule object at 0x7f01>").name,
            "<built-in method run of PyCapsule object>");
  const FrameName python = FrameNameOf(SpanKind::kPython, "a (b)/c.py(41): f (g)");
  EXPECT_EQ(python.file, "a (b)/c.py");
  EXPECT_EQ(python.line, 41);
  EXPECT_EQ(python.name, "f (g)");
}

TEST(NameStore, NamesBeyondItsMemoryAreReadFromDisk) {
  NameStore names;
  const std::string large(NameStore::kMaxNameBytes, 'x');
  std::vector<uint32_t> numbers;
  constexpr int kCount = 2 * static_cast<int>(NameStore::kMaxBytes / NameStore::kMaxNameBytes);
  for (int i = 0; i < kCount; ++i) numbers.push_back(names.Add(std::to_string(i) + large));
  EXPECT_TRUE(NameStore::IsUnique(numbers.front()));
  EXPECT_FALSE(NameStore::IsUnique(numbers.back()));
  for (int i = 0; i < kCount; ++i)
    EXPECT_EQ(names.Get(numbers[static_cast<size_t>(i)]),
              (std::to_string(i) + large).substr(0, NameStore::kMaxNameBytes));
  EXPECT_TRUE(names.status().has_value());
}

class SpanRowsTest : public testing::Test {
 protected:
  void Add(int64_t start_ns, int64_t end_ns, SpanKind kind, std::string_view name, int32_t tid = 1) {
    spans_.Add({.start_ns = start_ns, .end_ns = end_ns, .tid = tid, .name = names_.Add(name), .kind = kind});
  }
  // Locations of each call's stack, innermost first.
  std::vector<size_t> Depths() {
    std::vector<size_t> depths;
    Rows rows([&](const model::Batch& batch) -> Status {
      if (batch.table == "stacks")
        for (const model::Stack& stack : model::RowsOf(model::kStacks, batch))
          depths.push_back(stack.locations.size());
      return {};
    });
    EXPECT_TRUE(spans_.Finish().has_value());
    SpanRows writer(names_, domains_, [](int64_t) { return SpanRows::Process{}; }, 0, rows, drops_);
    EXPECT_TRUE(writer.Write(spans_, allocations_).has_value());
    EXPECT_TRUE(rows.PassAll().has_value());
    return depths;
  }

  NameStore names_;
  SpanRows::DomainNames domains_;
  SpanRuns spans_{std::make_shared<analyze::TemporaryFile>()};
  AllocationRuns allocations_{std::make_shared<analyze::TemporaryFile>()};
  model::DropCounts drops_;
};

TEST_F(SpanRowsTest, ACallIsInWhatIsOpenOnItsThreadInAnyOrderOfTheFile) {
  Add(10, 20, SpanKind::kCall, "launch");
  Add(0, 5, SpanKind::kOperator, "before");
  Add(5, 30, SpanKind::kOperator, "around");
  Add(0, 90, SpanKind::kOperator, "elsewhere", 2);
  Add(0, 90, SpanKind::kPython, "f");
  EXPECT_THAT(Depths(), ElementsAre(3));
}

TEST_F(SpanRowsTest, AnAllocationHasTheStackOfItsThreadWhenItHappens) {
  Add(0, 90, SpanKind::kPython, "f");
  Add(10, 20, SpanKind::kOperator, "aten::empty");
  Add(0, 90, SpanKind::kOperator, "elsewhere", 2);
  const auto allocate = [this](int64_t time_ns, int64_t bytes, int64_t tid = 1) {
    allocations_.Add(
        {.device = {1, 2}, .time_ns = time_ns, .process = 0, .address = 64, .bytes = bytes, .tid = tid});
  };
  allocate(95, -512);
  allocate(10, 512);
  allocate(20, 256);
  allocate(15, 128, 3);
  std::map<Id128, size_t> depths;
  std::vector<model::Allocation> allocations;
  Rows rows([&](const model::Batch& batch) -> Status {
    if (batch.table == "stacks")
      for (const model::Stack& stack : model::RowsOf(model::kStacks, batch))
        depths[stack.stack] = stack.locations.size();
    if (batch.table == "allocations") allocations = model::RowsOf(model::kAllocations, batch);
    return {};
  });
  ASSERT_TRUE(spans_.Finish().has_value() && allocations_.Finish().has_value());
  const auto find_process = [](int64_t) { return SpanRows::Process{.id = {7, 7}, .awaited = {}}; };
  SpanRows writer(names_, domains_, find_process, 1'000, rows, drops_);
  ASSERT_TRUE(writer.Write(spans_, allocations_).has_value());
  ASSERT_TRUE(rows.PassAll().has_value());
  ASSERT_EQ(allocations.size(), 4U);
  const auto depth_of = [&](const model::Allocation& each) {
    return each.stack.has_value() ? depths.at(*each.stack) : 0;
  };
  EXPECT_EQ(depth_of(allocations[0]), 2U) << "of the function and the operator that begins then";
  EXPECT_EQ(depth_of(allocations[1]), 0U) << "no frames are known of its thread";
  EXPECT_EQ(depth_of(allocations[2]), 1U) << "the operator has ended";
  EXPECT_EQ(depth_of(allocations[3]), 0U) << "everything has ended";
  EXPECT_EQ(allocations[0].time_ns, 1'010);
  EXPECT_EQ(allocations[0].process, (Id128{7, 7}));
  EXPECT_EQ(allocations[0].device, (Id128{1, 2}));
  EXPECT_EQ(std::pair(allocations[0].bytes, allocations[0].released), std::pair(int64_t{512}, false));
  EXPECT_EQ(std::pair(allocations[3].bytes, allocations[3].released), std::pair(int64_t{512}, true));
}

TEST_F(SpanRowsTest, RangesKeepTheDomainOfTheirProcess) {
  domains_ = {{{7, 1}, "NCCL"}, {{8, 1}, "other"}};
  for (const auto& [process, domain, kind] :
       {std::tuple(7, 1, SpanKind::kNvtxPushPop), std::tuple(8, 1, SpanKind::kNvtxStartEnd),
        std::tuple(7, 2, SpanKind::kNvtxPushPop), std::tuple(7, 0, SpanKind::kNvtxPushPop),
        std::tuple(7, 1, SpanKind::kAnnotation)})
    spans_.Add({.start_ns = 10,
                .end_ns = 20,
                .process = process,
                .result = domain,
                .name = names_.Add("a"),
                .kind = kind});
  std::vector<std::string> found;
  Rows rows([&](const model::Batch& batch) -> Status {
    if (batch.table == "ranges")
      for (const model::Range& range : model::RowsOf(model::kRanges, batch)) found.push_back(range.domain);
    return {};
  });
  EXPECT_TRUE(spans_.Finish().has_value());
  SpanRows writer(names_, domains_, [](int64_t) { return SpanRows::Process{}; }, 0, rows, drops_);
  EXPECT_TRUE(writer.Write(spans_, allocations_).has_value());
  EXPECT_TRUE(rows.PassAll().has_value());
  EXPECT_THAT(found, testing::UnorderedElementsAre("NCCL", "other", "domain 2", "", ""));
}

TEST_F(SpanRowsTest, CallsThatWaitAreWaitsWhereTheDeviceIsKnown) {
  for (const char* call : {"cudaStreamSynchronize_v3020", "cuCtxSynchronize", "cudaEventSynchronize",
                           "cudaMemcpy", "cudaLaunchKernel"})
    Add(10, 20, SpanKind::kCall, call);
  EXPECT_TRUE(spans_.Finish().has_value());
  for (const bool known : {false, true}) {
    std::vector<std::string> waits;
    Rows rows([&](const model::Batch& batch) -> Status {
      if (batch.table == "syncs")
        for (const model::Sync& sync : model::RowsOf(model::kSyncs, batch)) waits.push_back(sync.kind);
      return {};
    });
    const SpanRows::Process process{.id = {1, 1},
                                    .awaited = known ? std::optional(Id128{2, 1}) : std::nullopt};
    SpanRows writer(names_, domains_, [&](int64_t) { return process; }, 0, rows, drops_);
    EXPECT_TRUE(writer.Write(spans_, allocations_).has_value());
    EXPECT_TRUE(rows.PassAll().has_value());
    EXPECT_THAT(waits, testing::UnorderedElementsAreArray(
                           known ? std::vector<std::string>{"stream", "context", "event"}
                                 : std::vector<std::string>{}));
  }
}

TEST_F(SpanRowsTest, AChildThatEndsAfterItsParentEndsWithIt) {
  Add(0, 10, SpanKind::kOperator, "parent");
  Add(5, 12, SpanKind::kOperator, "child");
  Add(11, 12, SpanKind::kCall, "launch");
  EXPECT_THAT(Depths(), ElementsAre(1));
}

TEST_F(SpanRowsTest, DeepStacksKeepTheirInnermostFrames) {
  for (int i = 0; i < 200; ++i) Add(i, 1'000 - i, SpanKind::kPython, "f");
  Add(500, 501, SpanKind::kCall, "launch");
  EXPECT_THAT(Depths(), ElementsAre(127));
  EXPECT_EQ(drops_.Of(model::DropReason::kStackTruncated), 1);
}

TEST_F(SpanRowsTest, NestingWithoutEndIsBounded) {
  for (int i = 0; i < 3'000; ++i) Add(i, 100'000 - i, SpanKind::kPython, "f");
  Add(5'000, 5'001, SpanKind::kCall, "launch");
  EXPECT_THAT(Depths(), ElementsAre(127));
  EXPECT_GT(drops_.Of(model::DropReason::kStackTruncated), 1'900);
}

}  // namespace
}  // namespace gpusonde::convert
