// SPDX-License-Identifier: Apache-2.0
#include "base/problem_log.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

using Change = ProblemLog::Change;

TEST(ProblemLog, SuccessFromTheStartIsNoChange) {
  ProblemLog problem;
  EXPECT_EQ(problem.Set(""), Change::kNone);
}

TEST(ProblemLog, AProblemBeginsAndEndsOnce) {
  ProblemLog problem;
  EXPECT_EQ(problem.Set("no route to host"), Change::kBegan);
  EXPECT_EQ(problem.Set("no route to host"), Change::kNone);
  EXPECT_EQ(problem.Set(""), Change::kEnded);
  EXPECT_EQ(problem.Set(""), Change::kNone);
}

TEST(ProblemLog, AnotherProblemBeginsWithoutAnEndOfTheFirst) {
  ProblemLog problem;
  EXPECT_EQ(problem.Set("no route to host"), Change::kBegan);
  EXPECT_EQ(problem.Set("connection refused"), Change::kBegan);
  EXPECT_EQ(problem.Set("no route to host"), Change::kBegan);
}

TEST(ProblemLog, AProblemMayReturn) {
  ProblemLog problem;
  EXPECT_EQ(problem.Set("connection refused"), Change::kBegan);
  EXPECT_EQ(problem.Set(""), Change::kEnded);
  EXPECT_EQ(problem.Set("connection refused"), Change::kBegan);
}

}  // namespace
}  // namespace gpusonde
