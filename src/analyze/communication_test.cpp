// SPDX-License-Identifier: Apache-2.0
#include "analyze/communication.h"

#include <gtest/gtest.h>

#include <string>

namespace gpusonde::analyze {
namespace {

TEST(CommunicationKernels, RecognisesTheKernelsOfKnownLibraries) {
  const CommunicationKernels kernels;
  EXPECT_EQ(kernels.LibraryOf("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            "NCCL");
  EXPECT_EQ(kernels.LibraryOf("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)"), "NCCL");
  EXPECT_EQ(kernels.LibraryOf("rcclGenericKernel<1, false>"), "RCCL");
  EXPECT_EQ(kernels.LibraryOf("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)"),
            "vLLM");
  EXPECT_EQ(kernels.LibraryOf("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>()"),
            "PyTorch symmetric memory");
  EXPECT_EQ(kernels.LibraryOf("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_"
                              "lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1>()"),
            "FlashInfer");
  EXPECT_EQ(kernels.LibraryOf("void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>()"),
            "TensorRT-LLM");
  EXPECT_EQ(kernels.LibraryOf("deep_ep::internode_ll::dispatch<false>"), "DeepEP");
  EXPECT_EQ(kernels.LibraryOf("ampere_sgemm_128x64_nn"), "");
  EXPECT_EQ(kernels.LibraryOf("void block_reduce_kernel<float>"), "");
  EXPECT_EQ(kernels.LibraryOf(""), "");
}

TEST(CommunicationKernels, AnExpressionAddsKernels) {
  const CommunicationKernels kernels = CommunicationKernels::With("^my_(all|reduce)").value();
  EXPECT_EQ(kernels.LibraryOf("my_all_gather"), CommunicationKernels::kAdded);
  EXPECT_EQ(kernels.LibraryOf("not_my_all_gather"), "");
  EXPECT_EQ(kernels.LibraryOf("my_all_nccl"), "NCCL");
  EXPECT_FALSE(CommunicationKernels::With("(").has_value());
}

TEST(CommunicationKernels, ALongNameOverflowsNothing) {
  const CommunicationKernels kernels = CommunicationKernels::With("(a|b)*c").value();
  EXPECT_EQ(kernels.LibraryOf(std::string(5'000'000, 'a')), "");
}

}  // namespace
}  // namespace gpusonde::analyze
