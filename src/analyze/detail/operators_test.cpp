// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/operators.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyze/archive.h"
#include "analyze/detail/detail_state.h"
#include "analyze/lines.h"

namespace gpusonde::analyze {
namespace {

using importers::EventBatch;
using importers::SpanKind;
using testing::SizeIs;

// A trace made of spans of threads and of kernels, each with its launch.
class OperatorsTest : public testing::Test {
 protected:
  void Span(SpanKind kind, const std::string& name, int64_t start_ns, int64_t end_ns, int32_t tid = 1) {
    batch_.spans.push_back({.start_ns = start_ns,
                            .end_ns = end_ns,
                            .process = 7,
                            .tid = tid,
                            .name = state_.Name(name),
                            .kind = kind});
  }
  void Kernel(const std::string& name, int64_t call_ns, int64_t duration_ns, int32_t tid = 1) {
    ++correlation_;
    batch_.spans.push_back({.start_ns = call_ns,
                            .end_ns = call_ns + 1,
                            .process = 7,
                            .correlation = correlation_,
                            .tid = tid,
                            .name = state_.Name("cudaLaunchKernel"),
                            .kind = SpanKind::kCall});
    batch_.gpu.push_back({.start_ns = call_ns + 5,
                          .end_ns = call_ns + 5 + duration_ns,
                          .process = 7,
                          .correlation = correlation_,
                          .name = state_.Name(name)});
    batch_.gpu_details.emplace_back();
  }
  std::vector<OperatorLine> Lines() {
    batch_.Flush(state_);
    EXPECT_TRUE(state_.Finish().has_value());
    return MakeOperatorLines(SumOperators(state_).value());
  }

  DetailState state_{/*one_process=*/false, {}};
  EventBatch batch_;
  int64_t correlation_ = 0;
};

std::string TextOf(const std::vector<OperatorLine>& lines) {
  std::string text;
  for (const OperatorLine& line : lines)
    text += fmt::format("{} {}: {} calls, {} launches, self {}, total {}\n", line.kind, line.name, line.calls,
                        line.launches, line.self_ns, line.total_ns);
  return text;
}

TEST_F(OperatorsTest, WorkBelongsToAllThatIsOpenOnItsThreadAndItselfToTheInnermostOfEachKind) {
  Span(SpanKind::kAnnotation, "ProfilerStep#1", 0, 100);
  Span(SpanKind::kPython, "nn.Module: Linear_0", 5, 60);
  Span(SpanKind::kPython, "model.py(3): forward", 6, 60);  // only modules count
  Span(SpanKind::kOperator, "aten::linear", 10, 50);
  Span(SpanKind::kOperator, "aten::addmm", 20, 40);
  Kernel("gemm", 25, 1000);
  Kernel("bias", 45, 10);
  Kernel("elsewhere", 25, 7, /*tid=*/2);
  Span(SpanKind::kAnnotation, "ProfilerStep#2", 100, 200);
  Kernel("gemm", 150, 300);
  const std::vector<OperatorLine> lines = Lines();
  EXPECT_EQ(TextOf(lines),
            "operator aten::linear: 1 calls, 2 launches, self 10, total 1010\n"
            "operator aten::addmm: 1 calls, 1 launches, self 1000, total 1000\n"
            "module Linear_0: 1 calls, 2 launches, self 1010, total 1010\n"
            "range ProfilerStep: 2 calls, 3 launches, self 1310, total 1310\n");
  ASSERT_THAT(lines[3].kernels, SizeIs(2));
  EXPECT_EQ(lines[3].kernels[0].name, "gemm");
  EXPECT_EQ(lines[3].kernels[0].count, 2);
  EXPECT_EQ(lines[3].kernels[0].total_ns, 1300);
}

TEST_F(OperatorsTest, ASpanSurroundsACallThatBeginsWithItButNotOneThatBeginsAtItsEnd) {
  Span(SpanKind::kOperator, "a", 10, 20);
  Kernel("at the begin", 10, 1);
  Kernel("at the end", 20, 100);
  EXPECT_EQ(TextOf(Lines()), "operator a: 1 calls, 1 launches, self 1, total 1\n");
}

TEST_F(OperatorsTest, ARecursionCountsOnce) {
  Span(SpanKind::kOperator, "a", 0, 100);
  Span(SpanKind::kOperator, "b", 10, 90);
  Span(SpanKind::kOperator, "a", 20, 80);
  Kernel("k", 30, 5);
  EXPECT_EQ(TextOf(Lines()),
            "operator a: 2 calls, 1 launches, self 5, total 5\n"
            "operator b: 1 calls, 1 launches, self 0, total 5\n");
}

TEST_F(OperatorsTest, RangesThatOverlapBothHaveTheWork) {
  Span(SpanKind::kNvtxStartEnd, "first", 0, 50);
  Span(SpanKind::kNvtxStartEnd, "second", 20, 100);
  Kernel("k", 30, 5);
  Kernel("k", 60, 7);
  EXPECT_EQ(TextOf(Lines()),
            "range second: 1 calls, 2 launches, self 12, total 12\n"
            "range first: 1 calls, 1 launches, self 0, total 5\n");
}

TEST_F(OperatorsTest, CallsOfEmitNvtxAreOneOperator) {
  Span(SpanKind::kNvtxPushPop, "aten::mm, seq = 12, op_id = 34", 0, 10);
  Span(SpanKind::kNvtxPushPop, "aten::mm, op_id = 35", 20, 30);
  Kernel("k", 5, 5);
  Kernel("k", 25, 5);
  EXPECT_EQ(TextOf(Lines()), "range aten::mm: 2 calls, 2 launches, self 10, total 10\n");
}

// More pairs than are kept, and more names: sums stay complete.
TEST_F(OperatorsTest, MemoryIsBoundedAndSumsAreComplete) {
  constexpr int kOperators = 60'000;
  for (int64_t i = 0; i < kOperators; ++i) {
    Span(SpanKind::kAnnotation, "all", i * 100, i * 100 + 99);
    Span(SpanKind::kOperator, fmt::format("operator {}", i), i * 100, i * 100 + 99);
    for (int kernel = 0; kernel < 4; ++kernel)
      Kernel(fmt::format("kernel {}", (i + kernel) % 3'000), i * 100 + kernel, 10);
  }
  batch_.Flush(state_);
  ASSERT_TRUE(state_.Finish().has_value());
  const OperatorTable table = SumOperators(state_).value();
  EXPECT_LE(table.rows().size(), NameTable::kMaxNames + 2);
  size_t pairs = 0;
  int64_t total_ns = 0;
  int64_t of_kernels_ns = 0;
  for (const auto& [key, row] : table.rows()) {
    pairs += row.kernels.size();
    total_ns += row.total_ns;
    for (const auto& [kernel, sums] : row.kernels) of_kernels_ns += sums.total_ns;
  }
  EXPECT_LE(pairs, OperatorTable::kMaxPairs + table.rows().size());
  EXPECT_EQ(total_ns, 2 * kOperators * 4 * 10);
  EXPECT_EQ(of_kernels_ns, total_ns);
}

TEST_F(OperatorsTest, TablesMergeInAnyOrderAndSurviveAnArchive) {
  Span(SpanKind::kOperator, "a", 0, 50);
  Kernel("k", 10, 5);
  Kernel("l", 20, 50);
  batch_.Flush(state_);
  ASSERT_TRUE(state_.Finish().has_value());
  OperatorTable one = SumOperators(state_).value();
  OperatorTable other;
  OperatorTable::Sums& row = other.At({OperatorKind::kOperator, other.Name("a")});
  row.calls = 1;
  row.launches = 1;
  row.total_ns = row.self_ns = 100;
  other.AddKernel({OperatorKind::kOperator, other.Name("a")}, row, other.Name("k"), 100);
  const auto merged = [](const OperatorTable& first, const OperatorTable& second) {
    OperatorTable sums;
    sums.Merge(first);
    sums.Merge(second);
    sums.Finish();
    const std::vector<OperatorLine> lines = MakeOperatorLines(sums);
    EXPECT_EQ(lines[0].kernels[0].name, "k");
    EXPECT_EQ(lines[0].kernels[0].total_ns, 105);
    return TextOf(lines);
  };
  EXPECT_EQ(merged(one, other), "operator a: 2 calls, 3 launches, self 155, total 155\n");
  EXPECT_EQ(merged(other, one), merged(one, other));
  ArchiveWriter out;
  one.Transfer(out);
  const std::string bytes = out.Take();
  OperatorTable read;
  ArchiveReader in(bytes);
  read.Transfer(in);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(TextOf(MakeOperatorLines(read)), TextOf(MakeOperatorLines(one)));
}

}  // namespace
}  // namespace gpusonde::analyze
