// SPDX-License-Identifier: Apache-2.0
#include "serve/refusals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Refusals, EachReasonIsASentenceWithItsHosts) {
  Refusals refusals;
  refusals.Add("b", "the name is taken", 1);
  for (int i = 1; i <= 7; ++i) refusals.Add(fmt::format("n{}", i), "the server is full", 1);
  EXPECT_THAT(refusals.Sentences(2),
              ElementsAre("Rows of n1, n2, n3, n4, n5 and 2 more hosts are refused: the server is full.",
                          "Rows of b are refused: the name is taken."));
  EXPECT_THAT(refusals.Sentences(2, "n7"), ElementsAre("Rows of n7 are refused: the server is full."));
  EXPECT_THAT(refusals.Sentences(2, "n8"), IsEmpty());
}

TEST(Refusals, WhatWasRefusedLongAgoOrForAnotherReasonIsForgotten) {
  Refusals refusals;
  refusals.Add("a", "one", 0);
  refusals.Add("b", "one", 10);
  refusals.Add("b", "two", 20);
  EXPECT_THAT(refusals.Sentences(Refusals::kLatelyNs + 1), ElementsAre("Rows of b are refused: two."));
  EXPECT_THAT(refusals.Sentences(Refusals::kLatelyNs + 20), IsEmpty());
}

TEST(Refusals, WhatIsSentAgainIsForgottenOnceItIsStored) {
  constexpr Id128 kSpool{1, 2}, kOther{1, 3};
  Refusals refusals;
  refusals.Add("a", "the disk is full", 1, kSpool);
  refusals.ForgetStored("a", kOther);
  refusals.ForgetStored("b", kSpool);
  EXPECT_THAT(refusals.Sentences(2), SizeIs(1)) << "another agent's with the same name";
  refusals.ForgetStored("a", kSpool);
  EXPECT_THAT(refusals.Sentences(2), IsEmpty());
  refusals.Add("a", "malformed", 1);
  refusals.ForgetStored("a", kSpool);
  EXPECT_THAT(refusals.Sentences(2), SizeIs(1)) << "the agent has dropped it";
}

TEST(Refusals, ReasonsAndHostsAreBounded) {
  Refusals refusals;
  for (int i = 0; i < 10; ++i) refusals.Add(fmt::format("n{}", i), fmt::format("reason {}", i), 1);
  const auto sentences = refusals.Sentences(2);
  ASSERT_THAT(sentences, SizeIs(6));
  EXPECT_THAT(sentences.back(), HasSubstr("Rows of 5 more hosts"));
  for (int i = 0; i < 2000; ++i) refusals.Add(fmt::format("m{:04}", i), "full", 3 + i);
  EXPECT_THAT(refusals.Sentences(3000), ElementsAre(HasSubstr("and 995 more hosts")));
}

}  // namespace
}  // namespace gpusonde::serve
