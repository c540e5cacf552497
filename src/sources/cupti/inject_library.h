// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sources/proc/process.h"

namespace gpusonde::cupti {

inline constexpr std::string_view kLibraryName = "libgpusonde-inject.so";

// The path of the libgpusonde-inject.so installed with this program (in ../lib of its folder); nullopt when
// it doesn't exist.
std::optional<std::string> FindInjectLibrary();

// Whether this machine has the CUDA driver, so that there may be GPU work to profile.
bool CudaDriverIsThere();

// The environment variables ("NAME=value") with which the CUDA driver, NVTX and NCCL load the library into a
// program. Variables that are set already belong to another tool and are left alone.
std::vector<std::string> InjectEnvironment(const std::string& library);

// Whether a process with these mappings has loaded the CUDA driver, but neither has our library nor was
// started with an environment that names it, so that its GPU work can't be seen. False if that can't be read.
bool UsesCudaWithoutInjection(int32_t pid, std::span<const proc::MappedFile> files);

}  // namespace gpusonde::cupti
