// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/names.h"

#include <gtest/gtest.h>

#include "wire/nvidia/cupti.h"

namespace gpusonde::cupti {
namespace {

TEST(CallName, IsTheFunctionNameInTheSourceCode) {
  EXPECT_EQ(CallName(true, 211), "cudaLaunchKernel");
  EXPECT_EQ(CallName(true, 505), "cudaLaunchKernel");  // __cudaLaunchKernel_v13000
  EXPECT_EQ(CallName(true, 225), "cudaMemcpyAsync");   // cudaMemcpyAsync_ptsz_v7000
  EXPECT_EQ(CallName(true, 311), "cudaGraphLaunch");
  EXPECT_EQ(CallName(false, 307), "cuLaunchKernel");
  EXPECT_EQ(CallName(false, 277), "cuMemcpyHtoDAsync");  // cuMemcpyHtoDAsync_v2
  EXPECT_EQ(CallName(false, 211), "");                   // not a launch of the driver
  EXPECT_EQ(CallName(true, 100'000), "");
}

TEST(Kinds, HaveTheNamesUsedInTables) {
  EXPECT_EQ(CopyKindName(GPUSONDE_CUPTI_MEMCPY_HTOA), "htod");
  EXPECT_EQ(CopyKindName(GPUSONDE_CUPTI_MEMCPY_PTOP), "ptop");
  EXPECT_EQ(CopyKindName(99), "unknown");
  EXPECT_EQ(MemoryKindName(GPUSONDE_CUPTI_MEMORY_MANAGED_STATIC), "managed");
  EXPECT_EQ(SyncKindName(GPUSONDE_CUPTI_SYNC_STREAM_WAIT_EVENT), "stream_wait");
}

}  // namespace
}  // namespace gpusonde::cupti
