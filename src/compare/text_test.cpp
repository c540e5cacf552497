// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/html.h"
#include "compare/comparison.h"
#include "compare/testing/made_run.h"

namespace gpusonde::compare {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CompareText, ComparesKindsOfWorkWhereKernelsHaveOtherNames) {
  compare::Run a = Make({.kernels = 2}, 1), b = MakeOther({.kernels = 2}, 2);
  a.kernels["cutlass_gemm"] = a.kernels["kernel0"];
  b.kernels["Cijk_1"] = b.kernels["other_kernel0"];
  const std::string text = ToText(CompareTwo(std::move(a), std::move(b), {}));
  EXPECT_THAT(text, HasSubstr("- 100 % of the kernel time is in kernels that only one side has."));
  EXPECT_THAT(text, ContainsRegex("- Matrix products: .* instead of "));
}

TEST(CompareText, BeginsWithWhatChanged) {
  const std::string text = ToText(CompareTwo(Make({}, 1), Make({.slower = 2}, 2), {}));
  EXPECT_THAT(text, HasSubstr("% more time than A for the same work (95 % interval: "));
  EXPECT_THAT(text, ContainsRegex("- kernel19 takes (9[5-9]|10[0-5])\\.[0-9] % longer per launch"));
  EXPECT_THAT(text, Not(HasSubstr("- kernel18")));
  EXPECT_LT(text.find("- kernel19"), text.find("A: made"));
}

TEST(CompareText, ChangesComeByWhatTheyCost) {
  Comparison comparison = CompareTwo(Make({}, 1), Make({}, 2), {});
  for (const size_t i : {0, 1}) {
    comparison.kernels.at(i).change = Change::kSlower;
    comparison.kernels[i].duration = Ratio{.ratio = 1.5};
    comparison.kernels[i].slower_ns = i == 0 ? 1e6 : 2e6;
  }
  EXPECT_THAT(ToText(comparison), ContainsRegex("- " + comparison.kernels[1].line.name + " takes.*\n- " +
                                                comparison.kernels[0].line.name + " takes"));
}

TEST(CompareText, NamesAreEscaped) {
  compare::Run a = Make({}, 1), b = Make({}, 2);
  a.paths = {"a\x1b[2J"};
  a.kernels["\x1b]0;title\x07"] = a.kernels["kernel19"];
  const std::string text = ToText(CompareTwo(std::move(a), std::move(b), {}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
}

TEST(Html, HasTheSentencesOfTheTextAndKeepsNamesText) {
  compare::Run before = Make({}, 1);
  compare::Run after = Make({.slower = 1.5}, 2);
  const std::string hostile = "</ul><script>alert('x')</script>" + std::string(3'000, '"');
  for (compare::Run* const run : {&before, &after}) {
    run->paths.assign(2'000, "/a/" + hostile);
    run->notes.assign(2'000, hostile);
    for (int i = 0; i < 3'000; ++i) run->calls[hostile + std::to_string(i)] = {.count = 1, .total_ns = i};
  }
  after.kernels[hostile] = {.amount = {.count = 3, .total_ns = 300}};
  const Comparison comparison = CompareTwo(before, after, {});
  const std::string text = ToText(comparison);
  const std::string page = ToHtml(comparison);
  EXPECT_GE(SentencesOf(comparison).size(), 4u);
  for (const std::string& sentence : SentencesOf(comparison)) {
    EXPECT_THAT(text, HasSubstr(sentence));
    EXPECT_THAT(page, HasSubstr("<li>" + SentenceHtml(sentence) + "</li>"));
  }
  EXPECT_THAT(page, HasSubstr("<td>slower</td>"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<li></li>")));
  EXPECT_LT(page.size(), 1'000'000u);
}

TEST(Html, LeavesOutPartsOfTheTimeThatNeitherSideHas) {
  compare::Run a = Make({}, 1), b = Make({}, 2);
  a.times.graph_ns = b.times.graph_ns = 0;
  EXPECT_THAT(ToHtml(CompareTwo(a, b, {})), Not(HasSubstr("graphs traced as a whole")));
  b.times.graph_ns = 1e6;
  EXPECT_THAT(ToHtml(CompareTwo(a, b, {})), HasSubstr("graphs traced as a whole"));
}

}  // namespace
}  // namespace gpusonde::compare
