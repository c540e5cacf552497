// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cuda/account.h"

#include <algorithm>

#include "simgpu/cuda/api_call.h"

SIMGPU_EXPORT int32_t simgpuAccount(uint32_t device, SimgpuAccount* account) {
  using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace)
  const Result result = Ready();
  if (result != GPUSONDE_CU_SUCCESS) return result;
  Driver& driver = TheDriver();
  const std::lock_guard lock(driver.mutex);
  const auto context = std::find_if(driver.contexts.begin(), driver.contexts.end(),
                                    [&](const auto& owned) { return owned->device == device; });
  if (context == driver.contexts.end()) return GPUSONDE_CU_ERROR_INVALID_DEVICE;
  simgpu::Machine::Locked locked(*driver.machine, device);
  const simgpu::Account& own = locked->process((*context)->slot).account;
  *account = {own.kernels,    own.kernel_ns, own.copies,   own.copy_ns,
              own.copy_bytes, own.memsets,   own.memset_ns};
  return GPUSONDE_CU_SUCCESS;
}
