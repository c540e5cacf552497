// SPDX-License-Identifier: Apache-2.0
#include "compare/stack_diff.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/html.h"
#include "base/json_writer.h"
#include "compare/flame_html.h"
#include "compare/stack_json.h"

namespace gpusonde::compare {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct MadeStack {
  std::vector<std::string> frames;  // the outermost first
  int64_t ns = 0;
};

model::Profile ProfileOf(const std::vector<MadeStack>& stacks,
                         model::ProfileType type = model::ProfileType::kGpu) {
  model::Profile profile{.type = type};
  for (const MadeStack& made : stacks) {
    std::vector<int32_t> stack;
    for (auto frame = made.frames.rbegin(); frame != made.frames.rend(); ++frame) {
      stack.push_back(static_cast<int32_t>(profile.locations.size()));
      profile.locations.push_back({.lines = {{.function = static_cast<int32_t>(profile.functions.size())}}});
      profile.functions.push_back({.name = *frame});
    }
    profile.samples.push_back(
        {.stack = static_cast<int32_t>(profile.stacks.size()), .count = 1, .weight_ns = made.ns});
    profile.stacks.push_back(std::move(stack));
  }
  return profile;
}

TEST(StackDiff, MatchesStacksOfTwoGpuMakersByOperator) {
  StackDiff diff(model::ProfileType::kGpu);
  diff.Add(ProfileOf({{{"main", "aten::linear", "aten::addmm", "cudaLaunchKernel", "cutlass_gemm"}, 100},
                      {{"main", "aten::copy_", "cudaMemcpyAsync", "[memcpy htod]"}, 30}}),
           false, 1);
  diff.Add(ProfileOf({{{"main", "aten::linear", "aten::addmm", "hipModuleLaunchKernel", "Cijk_1"}, 400},
                      {{"main", "aten::copy_", "hipMemcpyWithStream", "[memcpy htod]"}, 60}}),
           true, 2);
  const std::vector<StackLine> operators = diff.Operators();
  ASSERT_EQ(operators.size(), 2u);
  EXPECT_THAT(operators[0].frames, ElementsAre("aten::addmm"));
  EXPECT_DOUBLE_EQ(operators[0].a_ns, 100);
  EXPECT_DOUBLE_EQ(operators[0].b_ns, 200);
  EXPECT_DOUBLE_EQ(operators[1].more_ns(), 0);
  // The kernels have other names, so the operator is what grew.
  ASSERT_EQ(diff.Changes(8).size(), 1u);
  EXPECT_THAT(diff.Changes(8)[0].frames, ElementsAre("main", "aten::linear", "aten::addmm"));
  EXPECT_DOUBLE_EQ(diff.root().a_ns, 130);
  EXPECT_DOUBLE_EQ(diff.root().b_ns, 230);
}

TEST(StackDiff, ListsWhatGrewAndShrankMost) {
  StackDiff diff(model::ProfileType::kCpu);
  diff.Add(ProfileOf({{{"main", "a"}, 100}, {{"main", "b"}, 50}, {{"main"}, 7}}, model::ProfileType::kCpu),
           false, 1);
  diff.Add(ProfileOf({{{"main", "a"}, 10}, {{"main", "c"}, 500}, {{"main"}, 7}, {{"main", "d"}, 20}},
                     model::ProfileType::kCpu),
           true, 1);
  const std::vector<StackLine> changes = diff.Changes(1);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_THAT(changes[0].frames, ElementsAre("main", "c"));
  EXPECT_DOUBLE_EQ(changes[0].more_ns(), 500);
  EXPECT_THAT(changes[1].frames, ElementsAre("main", "a"));
  EXPECT_DOUBLE_EQ(changes[1].more_ns(), -90);
  EXPECT_EQ(diff.Changes(9).size(), 4u);
}

TEST(StackDiff, JoinsTheLayersOfAModel) {
  StackDiff diff(model::ProfileType::kGpu);
  diff.Add(
      ProfileOf({{{"nn.Module: Block_1", "k"}, 100}, {{"nn.Module: Block_22", "k"}, 50}, {{"f_1", "k"}, 1}}),
      false, 1);
  ASSERT_EQ(diff.root().children.size(), 2u);
  EXPECT_DOUBLE_EQ(diff.root().children.at("nn.Module: Block").a_ns, 150);
}

// A recording's stacks are as deep as who wrote it wants, and what walks the tree recurses.
TEST(StackDiff, AStackOfManyFramesKeepsItsEndsAndItsTime) {
  std::vector<std::string> frames(20'000, "recursion");
  frames.front() = "main";
  frames.back() = "kernel";
  StackDiff diff(model::ProfileType::kGpu);
  diff.Add(ProfileOf({{frames, 100}}), false, 1);
  size_t depth = 0;
  for (const StackNode* node = &diff.root(); !node->children.empty(); node = &node->children.begin()->second)
    ++depth;
  ASSERT_LT(depth, 2'000u);
  const std::vector<StackLine> changes = diff.Changes(8);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].frames.front(), "main");
  EXPECT_THAT(changes[0].frames, Contains("[frames left out]").Times(1));
  EXPECT_EQ(changes[0].frames.back(), "kernel");
  EXPECT_DOUBLE_EQ(changes[0].more_ns(), -100);
}

TEST(FlameGraph, SaysChangesInColourAndWords) {
  StackDiff diff(model::ProfileType::kGpu);
  diff.Add(ProfileOf({{{"main", "aten::mm", "k"}, 100}, {{"main", "gone"}, 50}, {{"main", "same"}, 50}}),
           false, 1);
  diff.Add(ProfileOf({{{"main", "aten::mm", "k"}, 150}, {{"main", "new"}, 50}, {{"main", "same"}, 50}}), true,
           1);
  const std::string graph = FlameGraphOf(diff);
  EXPECT_THAT(graph, HasSubstr("frame more3\" style=\"left:0.00%"));
  EXPECT_THAT(graph, HasSubstr("aten::mm +50.0 %</div>"));
  EXPECT_THAT(graph, HasSubstr("frame less4"));
  EXPECT_THAT(graph, HasSubstr("gone only in A</div>"));
  EXPECT_THAT(graph, HasSubstr("new only in B</div>"));
  EXPECT_THAT(graph, HasSubstr("same +0.0 %</div>"));
}

TEST(FlameGraph, NamesThatBeginAlikeAreToldApart) {
  const std::string begin = "void at::native::elementwise_kernel<" + std::string(150, 'x');
  StackDiff diff(model::ProfileType::kGpu);
  diff.Add(ProfileOf({{{"main", begin + ", Add>(int)"}, 50}, {{"main", begin + ", Mul>(int)"}, 50}}), false,
           1);
  const std::string graph = FlameGraphOf(diff);
  for (const std::string_view end : {"Add>", "Mul>"}) {
    EXPECT_THAT(graph, HasSubstr(fmt::format("{} only in A</div>", EscapedHtml(end)))) << "in the frame";
    EXPECT_THAT(graph, HasSubstr(EscapedHtml(end) + ": 0 ns instead of ")) << "in what a pointer shows";
  }
}

TEST(FlameGraph, StaysSmallAndKeepsNamesText) {
  StackDiff diff(model::ProfileType::kGpu);
  std::vector<MadeStack> stacks;
  for (int i = 0; i < 300; ++i) {
    MadeStack stack{.ns = 1000};
    for (int depth = 0; depth < 120; ++depth)
      stack.frames.push_back("<script>\x1b" + std::string(500, '"') + std::to_string(i) + "_" +
                             std::to_string(depth));
    stacks.push_back(std::move(stack));
  }
  diff.Add(ProfileOf(stacks), false, 1);
  const std::string graph = FlameGraphOf(diff);
  EXPECT_LT(graph.size(), 800'000u);
  EXPECT_THAT(graph, Not(HasSubstr("<script")));
  EXPECT_EQ(graph.find('\x1b'), std::string::npos);
  EXPECT_EQ(FlameGraphOf(StackDiff(model::ProfileType::kCpu)), "");
}

std::string StacksOf(const StackDiff& diff, size_t most) {
  JsonWriter json;
  WriteStacks(json, diff, most);
  return json.Take();
}

TEST(StackJson, HasFramesInPreOrderWithTheTimesOfBothSides) {
  StackDiff diff(model::ProfileType::kCpu);
  diff.Add(ProfileOf({{{"main", "read"}, 100}, {{"main", "parse", "read"}, 30}}), false, 1);
  diff.Add(ProfileOf({{{"main", "read"}, 50}, {{"idle"}, 20}}), true, 2);
  EXPECT_EQ(StacksOf(diff, 100),
            R"({"strings":["all","idle","main","parse","read"],"nodes":{"name":[0,1,2,3,4,4],)"
            R"("parent":[-1,0,0,2,3,2],"a_ns":[130,0,130,30,30,100],"b_ns":[35,10,25,0,0,25]},"omitted":0})");
}

TEST(StackJson, TheSmallestFramesAreLeftOutAndCounted) {
  StackDiff diff(model::ProfileType::kCpu);
  std::vector<MadeStack> stacks = {{{"main", "large"}, 1'000}};
  for (int i = 0; i < 50; ++i) stacks.push_back({{"main", "small" + std::to_string(i)}, 1});
  diff.Add(ProfileOf(stacks), false, 1);
  EXPECT_EQ(StacksOf(diff, 10),
            R"({"strings":["all","main","large"],"nodes":{"name":[0,1,2],"parent":[-1,0,1],)"
            R"("a_ns":[1050,1050,1000],"b_ns":[0,0,0]},"omitted":50})");
}

TEST(StackJson, AnEmptyDifferenceHasItsRoot) {
  EXPECT_EQ(StacksOf(StackDiff(model::ProfileType::kCpu), 10),
            R"({"strings":["all"],"nodes":{"name":[0],"parent":[-1],"a_ns":[0],"b_ns":[0]},"omitted":0})");
}

}  // namespace
}  // namespace gpusonde::compare
