// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde::compare {

// What a kernel does, by its name: "matrix products", "attention" and so on, "other" if the name doesn't say.
// Kernels of different libraries and GPU makers have the same kinds. Fused kernels have that of the first
// that is found in the name. Reads at most the first 4 KiB. Thread-safe.
std::string_view KindOfWork(std::string_view kernel, bool communication);

}  // namespace gpusonde::compare
