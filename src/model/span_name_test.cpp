// SPDX-License-Identifier: Apache-2.0
#include "model/span_name.h"

#include <gtest/gtest.h>

namespace gpusonde::model {
namespace {

TEST(SpanName, OperatorsLoseWhatPyTorchAppends) {
  EXPECT_EQ(WithoutArguments("aten::mm, seq = 12, op_id = 34"), "aten::mm");
  EXPECT_EQ(WithoutArguments("aten::mm, op_id = 35"), "aten::mm");
  EXPECT_EQ(WithoutArguments("step#3, a"), "step#3, a");
}

TEST(SpanName, StepsLoseTheirNumbers) {
  EXPECT_EQ(RepeatedName("ProfilerStep#12"), "ProfilerStep");
  EXPECT_EQ(RepeatedName("layer2"), "layer2");
  EXPECT_EQ(RepeatedName("#7"), "#7");
  EXPECT_EQ(RepeatedName("7"), "7");
  EXPECT_EQ(RepeatedName(""), "");
}

TEST(SpanName, CallsLoseTheVersionsOfNsys) {
  EXPECT_EQ(WithoutVersion("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(WithoutVersion("cuMemcpyHtoD_v2"), "cuMemcpyHtoD_v2");
  EXPECT_EQ(WithoutVersion("_v7000"), "_v7000");
  EXPECT_EQ(WithoutVersion("7000"), "7000");
}

}  // namespace
}  // namespace gpusonde::model
