// SPDX-License-Identifier: Apache-2.0
#include "exporters/timeline/labels.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace gpusonde::exporters {
namespace {

using model::GpuWork;
using model::ThreadSpan;

GpuWork KernelNamed(std::string name) { return {.kind = GpuWork::Kind::kKernel, .name = std::move(name)}; }

TEST(WorkNames, AreThoseOfKineto) {
  WorkNames names;
  EXPECT_EQ(names.Of(KernelNamed("_Z4gemmi")), "gemm(int)");
  const GpuWork copy{
      .kind = GpuWork::Kind::kMemcpy, .copy = "htod", .source_memory = "pinned", .target_memory = "device"};
  EXPECT_EQ(names.Of(copy), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(names.Of({.kind = GpuWork::Kind::kMemcpy, .copy = "sideways"}),
            "Memcpy Unknown (Unknown -> Unknown)");
  EXPECT_EQ(names.Of({.kind = GpuWork::Kind::kMemset}), "Memset");
}

TEST(WorkNames, StayRightWhenThereAreMoreThanAreKept) {
  WorkNames names;
  for (int i = 0; i < 50'000; ++i) {
    const std::string name = "kernel_" + std::to_string(i);
    ASSERT_EQ(names.Of(KernelNamed(name)), name);
  }
  EXPECT_EQ(names.Of(KernelNamed("kernel_7")), "kernel_7");
}

TEST(WorkNames, AreUtf8) {
  WorkNames names;
  EXPECT_EQ(names.Of(KernelNamed("a\xFF")), "a" + std::string(kReplacement));
}

TEST(StartsWork, LaunchesCopiesAndSetsDoAndWaitsDoNot) {
  const auto starts = [](std::string domain, std::string name) {
    return StartsWork(
        {.kind = ThreadSpan::Kind::kCall, .domain = std::move(domain), .name = std::move(name)});
  };
  EXPECT_TRUE(starts("cuda_runtime", "cudaLaunchKernelExC"));
  EXPECT_TRUE(starts("cuda_driver", "cuMemsetD8Async"));
  EXPECT_TRUE(starts("cuda_runtime", "hipMemcpyWithStream"));
  EXPECT_FALSE(starts("cuda_runtime", "cudaStreamSynchronize"));
  EXPECT_FALSE(starts("os", "LaunchedElsewhere"));
}

TEST(Correlations, AreCuptisInTheFirstSessionAndNeverThoseOfAnother) {
  Correlations correlations;
  EXPECT_EQ(correlations.IdOf({1, 1}, 1, 42), 42u);
  EXPECT_EQ(correlations.IdOf({1, 2}, 1, 42), (uint64_t{1} << 32) + 42);
  EXPECT_EQ(correlations.IdOf({1, 1}, 2, 42), (uint64_t{2} << 32) + 42);
  EXPECT_EQ(correlations.IdOf({1, 1}, 1, 42), 42u);
  EXPECT_EQ(correlations.IdOf({1, 1}, 1, (int64_t{7} << 32) + 42), (uint64_t{3} << 32) + 42);
}

TEST(Correlations, UnknownOnesHaveNoId) {
  Correlations correlations;
  EXPECT_EQ(correlations.IdOf({1, 1}, 1, -1), std::nullopt);
}

}  // namespace
}  // namespace gpusonde::exporters
