// SPDX-License-Identifier: Apache-2.0
#include "fleet/kernel_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde::fleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(KernelWords, ArchitecturesAndSizesAreLeftOut) {
  EXPECT_THAT(KernelWords("ampere_sgemm_128x32_nn"), ElementsAre("sgemm", "nn"));
  EXPECT_EQ(KernelWords("ampere_sgemm_128x32_nn"), KernelWords("sm90_sgemm_64x64_nn"));
  EXPECT_THAT(KernelWords("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align1>(Params)"),
              ElementsAre("cutlass", "cutlass", "tensorop", "sgemm", "tn"));
}

TEST(KernelWords, ArgumentsAreLeftOutAndTemplatesKept) {
  EXPECT_THAT(
      KernelWords("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
                  "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"),
      ElementsAre("vectorized", "elementwise", "fillfunctor", "ul"));
  EXPECT_THAT(KernelWords("(anonymous namespace)::elementwise(float*)"), ElementsAre("elementwise"));
}

TEST(KernelWords, MangledNamesAreDemangledFirst) {
  EXPECT_EQ(KernelWords("_ZN6clover19par_ranged1d_kernelEi"),
            KernelWords("clover::par_ranged1d_kernel(int)"));
}

TEST(KernelWords, WhateverTheNameIsWordsAreBounded) {
  EXPECT_THAT(KernelWords(""), IsEmpty());
  EXPECT_THAT(KernelWords("1234 <<<((("), IsEmpty());
  EXPECT_THAT(KernelWords("\x80\xff\n"), IsEmpty());
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "ab_";
  EXPECT_EQ(KernelWords(many).size(), 64u);
  EXPECT_EQ(KernelWords(std::string(100'000, 'a')).front().size(), 64u);
}

}  // namespace
}  // namespace gpusonde::fleet
