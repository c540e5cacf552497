// SPDX-License-Identifier: Apache-2.0
#include "base/student_t.h"

#include <gtest/gtest.h>

namespace gpusonde {
namespace {

// Tables of Student's t.
TEST(StudentT, AgreesWithTables) {
  EXPECT_NEAR(StudentTail(2.131, 15), 0.025, 0.0005);
  EXPECT_NEAR(StudentTail(-2.131, 15), 0.975, 0.0005);
  EXPECT_NEAR(StudentTail(2.132, 4), 0.05, 0.001);
  EXPECT_NEAR(StudentQuantile(0.025, 15), 2.131, 0.01);
  EXPECT_NEAR(StudentQuantile(0.001, 30), 3.385, 0.02);
  EXPECT_NEAR(StudentQuantile(0.05, 1e6), 1.645, 0.001);
}

}  // namespace
}  // namespace gpusonde
