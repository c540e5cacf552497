// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/names.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace gpusonde::importers::kineto {
namespace {

std::string Unescaped(std::string_view text) {
  std::string out;
  Unescape(text, out);
  return out;
}

TEST(Unescape, IsTheInverseOfJsonsEscapes) {
  for (const std::string text :
       {"plain", "\"\\/\b\f\n\r\t", "\x01\x1f", "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"}) {
    const std::string dumped = nlohmann::json(text).dump(-1, ' ', true);  // \u for all but ASCII
    EXPECT_EQ(Unescaped(dumped.substr(1, dumped.size() - 2)), text);
  }
}

TEST(Unescape, LeavesWhatIsNoEscape) {
  EXPECT_EQ(Unescaped("a\\"), "a\\");
  EXPECT_EQ(Unescaped("\\q\\u12"), "\\q\\u12");
  EXPECT_EQ(Unescaped("\\ud800x\\udc00"), "\xEF\xBF\xBDx\xEF\xBF\xBD");
}

TEST(DescribeMemory, ReadsTheNamesOfKineto) {
  GpuEvent event;
  DescribeMemory("Memcpy HtoD (Pageable -> Device)", event);
  EXPECT_EQ(event.copy, CopyKind::kHostToDevice);
  EXPECT_EQ(event.source, MemoryKind::kPageable);
  EXPECT_EQ(event.target, MemoryKind::kDevice);
  event = {};
  DescribeMemory("Memcpy DtoH (Device -> Pinned)", event);
  EXPECT_EQ(event.copy, CopyKind::kDeviceToHost);
  EXPECT_EQ(event.target, MemoryKind::kPinned);
  event = {};
  DescribeMemory("Memset (Device)", event);
  EXPECT_EQ(event.copy, CopyKind::kUnknown);
  EXPECT_EQ(event.target, MemoryKind::kDevice);
  event = {};
  DescribeMemory(")(", event);
  EXPECT_EQ(event.target, MemoryKind::kUnknown);
}

TEST(DescribeMemory, ReadsTheNamesOfLevelZeroXlaAndRoctracer) {
  GpuEvent event;
  DescribeMemory("zeCommandListAppendMemoryCopy(M2D)", event);
  EXPECT_EQ(event.copy, CopyKind::kHostToDevice);
  EXPECT_EQ(event.source, MemoryKind::kPageable);
  event = {};
  DescribeMemory("zeCommandListAppendMemoryCopy(D2H)", event);
  EXPECT_EQ(event.copy, CopyKind::kDeviceToHost);
  EXPECT_EQ(event.target, MemoryKind::kPinned);
  event = {};
  DescribeMemory("zeCommandListAppendMemoryCopy(S2D)", event);
  EXPECT_EQ(event.copy, CopyKind::kUnknown);
  EXPECT_EQ(event.source, MemoryKind::kManaged);
  event = {};
  DescribeMemory("MemcpyD2D", event);
  EXPECT_EQ(event.copy, CopyKind::kDeviceToDevice);
  event = {};
  DescribeMemory("CopyDeviceToHost2D", event);
  EXPECT_EQ(event.copy, CopyKind::kDeviceToHost);
}

TEST(DescribeXlaCopy, ReadsSizeAndMemory) {
  GpuEvent event;
  DescribeXlaCopy("kind_src:device kind_dst:pageable size:4096 dest:0 async:1", event);
  EXPECT_EQ(event.bytes, 4096);
  EXPECT_EQ(event.source, MemoryKind::kDevice);
  EXPECT_EQ(event.target, MemoryKind::kPageable);
  DescribeXlaCopy("size:-1 kind_src:", event);
  EXPECT_EQ(event.bytes, 0);
  EXPECT_EQ(event.source, MemoryKind::kUnknown);
}

TEST(IsApiName, TakesCallsOfTheRuntimesOnly) {
  for (const char* const name : {"cuLaunchKernel", "cudaMemcpyAsync", "hipModuleLaunchKernel"})
    EXPECT_TRUE(IsApiName(name)) << name;
  for (const char* const name : {"cu", "custom_call", "cudagraph", "hip", "PjitFunction(f)"})
    EXPECT_FALSE(IsApiName(name)) << name;
}

TEST(EscapeControls, EscapesOnlyWithinStrings) {
  EXPECT_EQ(EscapeControls("{\n\"a\tb\": \"\x01\\\"\n\"\n}"), "{\n\"a\\u0009b\": \"\\u0001\\\"\\u000a\"\n}");
  EXPECT_EQ(EscapeControls("[1,\t\"a\"]"), "[1,\t\"a\"]");
}

TEST(CategoryOf, KnowsTheRuntimesOfOtherDevices) {
  for (const char* const category :
       {"xpu_runtime", "xpu_driver", "privateuse1_runtime", "privateuse1_driver", "mtia_runtime"})
    EXPECT_EQ(CategoryOf(category), Category::kApi) << category;
}

TEST(CategoryOf, KnowsOldAndNewSpellings) {
  EXPECT_EQ(CategoryOf("kernel"), CategoryOf("Kernel"));
  EXPECT_EQ(CategoryOf("gpu_memcpy"), CategoryOf("Memcpy"));
  EXPECT_EQ(CategoryOf("cuda_runtime"), CategoryOf("Runtime"));
  EXPECT_EQ(CategoryOf("cpu_op"), CategoryOf("Operator"));
  EXPECT_EQ(CategoryOf("gpu_user_annotation"), Category::kOther);
}

TEST(CategoryOf, KnowsWhatConvertersOfOtherTracesWrite) {
  for (const char* const category :
       {"KERNEL", "gpu_kernel", "GPU_Kernel", "GPU Kernel", "cuda-kernel", "cuda_kernel", "gpu,kernel",
        "kernel,gpu", "gpu, kernel", "gpu , Kernel"})
    EXPECT_EQ(CategoryOf(category), Category::kKernel) << category;
  EXPECT_EQ(CategoryOf("GPU_Memcpy"), Category::kMemcpy);
  EXPECT_EQ(CategoryOf("CUDA Runtime"), Category::kApi);
  for (const std::string& category : {std::string(), std::string(","), std::string("a, b"),
                                      std::string("kernels"), "Kernel" + std::string(1'000'000, 'x')})
    EXPECT_EQ(CategoryOf(category), Category::kOther) << category.size();
}

TEST(TrackNumber, IsANumberOrTheLastOneOfAText) {
  EXPECT_EQ(TrackNumber("7"), 7);
  EXPECT_EQ(TrackNumber("-1"), -1);
  EXPECT_EQ(TrackNumber("7.0"), 7);
  EXPECT_EQ(TrackNumber("\"7\""), 7);
  EXPECT_EQ(TrackNumber("\"Stream 7\""), 7);
  EXPECT_EQ(TrackNumber("\"GPU0 Stream 12 (copies)\""), 12);
  for (const char* const token : {"", "null", "true", "1.5", "\"\"", "\"GPU\"", "\"99999999999999999999\""})
    EXPECT_EQ(TrackNumber(token), std::nullopt) << token;
}

TEST(IsOnlyCounted, OperatorsPythonFunctionsAndWaitsAreReadInDetailOnly) {
  for (const char* category : {"cpu_op", "python_function", "cuda_sync"}) {
    EXPECT_TRUE(IsOnlyCounted(CategoryOf(category), Reading::kForAnalysis)) << category;
    EXPECT_FALSE(IsOnlyCounted(CategoryOf(category), Reading::kAll)) << category;
  }
  EXPECT_FALSE(IsOnlyCounted(Category::kKernel, Reading::kForAnalysis));
  for (const char* const category : {"cpu_op", "python_function", "user_annotation", "cuda_runtime"})
    EXPECT_TRUE(IsOnlyCounted(CategoryOf(category), Reading::kGpuWork)) << category;
  for (const char* const category : {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"})
    EXPECT_FALSE(IsOnlyCounted(CategoryOf(category), Reading::kGpuWork)) << category;
  EXPECT_TRUE(IsOnlyCounted(CategoryOf("ac2g"), Reading::kAll));
}

TEST(KeyIs, ComparesToTheQuote) {
  EXPECT_TRUE(KeyIs("ts\":1", "ts"));
  EXPECT_FALSE(KeyIs("tsx\":1", "ts"));
  EXPECT_FALSE(KeyIs("t\":1", "ts"));
}

TEST(OperationOf, KnowsTheNamesOfPyTorchAndNccl) {
  const std::pair<const char*, Operation> names[] = {
      {"allreduce", Operation::kAllReduce},
      {"all_reduce", Operation::kAllReduce},
      {"allreduce_coalesced", Operation::kAllReduce},
      {"_allgather_base", Operation::kAllGather},
      {"all_gather_into_tensor_coalesced", Operation::kAllGather},
      {"_reduce_scatter_base", Operation::kReduceScatter},
      {"all_to_allv", Operation::kAllToAll},
      {"alltoall_base", Operation::kAllToAll},
      {"broadcast", Operation::kBroadcast},
      {"_reduce_oop", Operation::kReduce},
      {"gather", Operation::kGather},
      {"scatter", Operation::kScatter},
      {"send", Operation::kSendReceive},
      {"recv", Operation::kSendReceive},
      {"ncclReduceScatter", Operation::kReduceScatter},
      {"all_reduce_barrier", Operation::kUnknown},
      {"wait", Operation::kUnknown},
      {"", Operation::kUnknown},
  };
  for (const auto& [name, operation] : names) EXPECT_EQ(OperationOf(name), operation) << name;
  EXPECT_EQ(OperationOf(std::string(1'000'000, 'x') + "send"), Operation::kUnknown);
}

TEST(ElementBytes, AreThoseOfPyTorchsTypes) {
  EXPECT_EQ(ElementBytes("Float"), 4);
  EXPECT_EQ(ElementBytes("BFloat16"), 2);
  EXPECT_EQ(ElementBytes("ComplexDouble"), 16);
  EXPECT_EQ(ElementBytes("Float8_e4m3fn"), 1);
  EXPECT_EQ(ElementBytes("Quaternion"), 0);
  EXPECT_EQ(ElementBytes(""), 0);
}

}  // namespace
}  // namespace gpusonde::importers::kineto
