// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/error.h"

namespace gpusonde::ebpf {

// Turns a failure to load or attach a BPF program into an error that names its most likely cause and the
// remedy.
Error Explain(int error_number, std::string_view what);

}  // namespace gpusonde::ebpf
