// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpusonde::cupti {

// libgpusonde-inject.so as it was installed with this program (../lib of where the program is); nothing when
// it isn't there.
std::optional<std::string> FindInjectLibrary();

// Whether this machine has CUDA's driver, so that there may be GPU work to hear of.
bool CudaDriverIsThere();

// What a program's environment must say so that the CUDA driver and NVTX load the library: "NAME=value".
// Variables that are set already belong to somebody else's tool and are left alone.
std::vector<std::string> InjectEnvironment(const std::string& library);

}  // namespace gpusonde::cupti
