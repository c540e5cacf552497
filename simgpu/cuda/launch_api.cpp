// SPDX-License-Identifier: Apache-2.0
// Kernel launches.
#include <cstring>

#include "simgpu/cuda/api_call.h"
#include "simgpu/cuda/callback_ids.h"
#include "simgpu/cuda/launch.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {
namespace {

constexpr int64_t kLongestKernelNs = 3'600'000'000'000;

// The 64 bits of a kernel's `index`-th parameter; nullopt when there are none.
std::optional<int64_t> Parameter(uint32_t index, void** params, void** extra) {
  int64_t value = 0;
  if (params != nullptr) {
    if (params[index] == nullptr) return std::nullopt;
    std::memcpy(&value, params[index], sizeof value);
    return value;
  }
  const std::byte* buffer = nullptr;
  size_t bytes = 0;
  for (void** at = extra; at != nullptr; at += 2) {
    const auto key = reinterpret_cast<uintptr_t>(*at);
    if (key == GPUSONDE_CU_LAUNCH_PARAM_END) break;
    if (key == GPUSONDE_CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const std::byte*>(at[1]);
    if (key == GPUSONDE_CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const size_t*>(at[1]);
  }
  if (buffer == nullptr || bytes < (index + 1) * sizeof value) return std::nullopt;
  std::memcpy(&value, buffer + index * sizeof value, sizeof value);
  return value;
}

Result LaunchOn(void* stream_handle, const Launch& launch) {
  Stream* stream = StreamOf(stream_handle);
  if (stream == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr)
    CaptureNode(*stream, GPUSONDE_CU_GRAPH_NODE_KERNEL).launch = launch;
  else
    SubmitLaunch(*stream, launch, 0, {});
  return GPUSONDE_CU_SUCCESS;
}

const char* NameOf(void* function) {
  const Function* wanted = As<Function>(function);
  return wanted == nullptr ? nullptr : wanted->name;
}

}  // namespace

Result MakeLaunch(Launch& launch, void* function, const uint32_t (&grid)[3], const uint32_t (&block)[3],
                  uint32_t shared_bytes, void** params, void** extra) {
  launch.function = As<Function>(function);
  if (launch.function == nullptr) return GPUSONDE_CU_ERROR_INVALID_HANDLE;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0) return GPUSONDE_CU_ERROR_INVALID_VALUE;
    launch.grid[i] = grid[i];
    launch.block[i] = block[i];
  }
  if (uint64_t{block[0]} * block[1] * block[2] > 1024) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  launch.shared_bytes = shared_bytes;
  const KernelTiming& timing = launch.function->timing;
  std::optional<int64_t> duration_ns = timing.constant_ns;
  if (timing.from_parameter.has_value()) duration_ns = Parameter(*timing.from_parameter, params, extra);
  launch.duration_ns = duration_ns.value_or(TheDriver().default_kernel_ns);
  if (launch.duration_ns < 0 || launch.duration_ns > kLongestKernelNs) return GPUSONDE_CU_ERROR_INVALID_VALUE;
  return GPUSONDE_CU_SUCCESS;
}

}  // namespace simgpu::cuda

using namespace simgpu::cuda;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z,
                                    unsigned shared_bytes, void* stream, void** kernel_params, void** extra) {
  const struct {
    void* function;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void* stream;
    void** kernel_params;
    void** extra;
  } params{function, grid_x,       grid_y, grid_z,        block_x, block_y,
           block_z,  shared_bytes, stream, kernel_params, extra};
  ApiCall call(kCall_cuLaunchKernel, "cuLaunchKernel", &params, NameOf(function));
  Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  Launch launch;
  result = MakeLaunch(launch, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
                      kernel_params, extra);
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : LaunchOn(stream, launch));
}

SIMGPU_EXPORT Result cuLaunchKernelEx(const gpusonde_cu_launch_config* config, void* function,
                                      void** kernel_params, void** extra) {
  const struct {
    const gpusonde_cu_launch_config* config;
    void* function;
    void** kernel_params;
    void** extra;
  } params{config, function, kernel_params, extra};
  ApiCall call(kCall_cuLaunchKernelEx, "cuLaunchKernelEx", &params, NameOf(function));
  Result result = ReadyWithContext();
  if (result != GPUSONDE_CU_SUCCESS) return call.Return(result);
  if (config == nullptr) return call.Return(GPUSONDE_CU_ERROR_INVALID_VALUE);
  Launch launch;
  result = MakeLaunch(launch, function, {config->grid_x, config->grid_y, config->grid_z},
                      {config->block_x, config->block_y, config->block_z}, config->shared_bytes,
                      kernel_params, extra);
  return call.Return(result != GPUSONDE_CU_SUCCESS ? result : LaunchOn(config->stream, launch));
}
