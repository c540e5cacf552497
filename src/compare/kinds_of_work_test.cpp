// SPDX-License-Identifier: Apache-2.0
#include "compare/kinds_of_work.h"

#include <gtest/gtest.h>

namespace gpusonde::compare {
namespace {

TEST(KindOfWork, IsTheSameForKernelsOfTwoMakers) {
  EXPECT_EQ(KindOfWork("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm>", false),
            "matrix products");
  EXPECT_EQ(KindOfWork("Cijk_Ailk_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x32", false),
            "matrix products");
  EXPECT_EQ(KindOfWork("void pytorch_flash::flash_fwd_kernel<64>", false), "attention");
  EXPECT_EQ(KindOfWork("attn_fwd", false), "attention");
  EXPECT_EQ(KindOfWork("void at::native::elementwise_kernel<4, direct_copy_kernel_cuda>", false),
            "copies and layouts");
  EXPECT_EQ(KindOfWork("void at::native::vectorized_elementwise_kernel<4>", false), "elementwise");
  EXPECT_EQ(KindOfWork("ncclDevKernel_AllReduce", true), "communication");
  EXPECT_EQ(KindOfWork("", false), "other");
}

}  // namespace
}  // namespace gpusonde::compare
