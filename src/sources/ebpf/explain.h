// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/error.h"

namespace gpusonde::ebpf {

// What a failure to load or attach a kernel program most likely means to the person at the keyboard.
Error Explain(int error_number, std::string_view what);

}  // namespace gpusonde::ebpf
