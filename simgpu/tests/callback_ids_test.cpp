// SPDX-License-Identifier: Apache-2.0
// Compares the callback ids of the calls that simgpu implements with NVIDIA's headers, if the build found
// them.
#include <gtest/gtest.h>

#include "simgpu/cuda/callback_ids.h"
#include "simgpu/cudart/callback_ids.h"

#ifdef GPUSONDE_CUPTI_HEADERS

#include <cupti.h>

namespace {

#define SAME_DRIVER_CALL(name, id) static_assert(CUPTI_DRIVER_TRACE_CBID_##name == (id));
#define SAME_RUNTIME_CALL(name, id) static_assert(CUPTI_RUNTIME_TRACE_CBID_##name == (id));
SIMGPU_DRIVER_CALLS(SAME_DRIVER_CALL)
SIMGPU_RUNTIME_CALLS(SAME_RUNTIME_CALL)

}  // namespace

#endif

TEST(CallbackIds, MatchNvidiasHeaders) {
#ifdef GPUSONDE_CUPTI_HEADERS
  SUCCEED() << "compared by static_assert with CUPTI " << CUPTI_API_VERSION;
#else
  GTEST_SKIP() << "this machine has no CUDA toolkit (cupti.h) to compare with";
#endif
}
