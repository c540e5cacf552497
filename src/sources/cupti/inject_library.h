// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpusonde::cupti {

// The path of the libgpusonde-inject.so installed with this program (in ../lib of its folder); nullopt when
// it doesn't exist.
std::optional<std::string> FindInjectLibrary();

// Whether this machine has the CUDA driver, so that there may be GPU work to profile.
bool CudaDriverIsThere();

// The environment variables ("NAME=value") with which the CUDA driver, NVTX and NCCL load the library into a
// program. Variables that are set already belong to another tool and are left alone.
std::vector<std::string> InjectEnvironment(const std::string& library);

}  // namespace gpusonde::cupti
