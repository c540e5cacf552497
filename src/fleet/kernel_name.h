// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::fleet {

// The words of a kernel's name that don't depend on GPU, batch size and library version: mangled names are
// demangled; arguments, numbers, and words for GPU architectures and tile sizes are removed; lower case.
// "ampere_sgemm_128x32_nn" and "sm90_sgemm_64x64_nn" both give {sgemm, nn}. At most 64 words, of at most 64
// characters; none if the name has no such words.
std::vector<std::string> KernelWords(std::string_view name);

}  // namespace gpusonde::fleet
