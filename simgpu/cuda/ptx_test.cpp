// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cuda/ptx.h"

#include <gtest/gtest.h>

namespace simgpu::cuda {
namespace {

TEST(Ptx, FindsEveryEntry) {
  const auto kernels = KernelsOfPtx(
      ".version 8.0\n.target sm_90\n.visible .entry _Z3addPfi(.param .u64 a, .param .u32 n)\n{ ret; }\n"
      ".weak .entry other()\n{ ret; }\n.func helper()\n{ ret; }\n");
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_TRUE(kernels.contains("_Z3addPfi"));
  EXPECT_TRUE(kernels.contains("other"));
}

TEST(Ptx, ReadsTheDurationFromTheCommentBeforeAnEntry) {
  const auto kernels = KernelsOfPtx(
      "// simgpu: duration_ns=1234\n.entry a() {}\n.entry b() {}\n// simgpu: duration_ns=param2\n.entry c() "
      "{}\n");
  EXPECT_EQ(kernels.at("a").constant_ns, 1234);
  EXPECT_FALSE(kernels.at("b").constant_ns.has_value());
  EXPECT_EQ(kernels.at("c").from_parameter, 2U);
}

TEST(Ptx, IgnoresEntriesInComments) { EXPECT_TRUE(KernelsOfPtx("/* .entry a() */ // .entry b()\n").empty()); }

TEST(Ptx, SurvivesBrokenText) {
  for (const char* text : {"", ".entry", ".entry ", "/*", "//", "// simgpu: duration_ns=", ".entry(",
                           "// simgpu: duration_ns=paramx\n"})
    EXPECT_TRUE(KernelsOfPtx(text).empty()) << text;
  EXPECT_EQ(KernelsOfPtx(".entry x").size(), 1U);
}

}  // namespace
}  // namespace simgpu::cuda
