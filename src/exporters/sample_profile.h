// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/profile.h"

namespace gpusonde::exporters {

// For tests: a small profile with everything that formats treat differently. Two processes with the same
// name, two threads in one of them, an inlined function, frames of the kernel, of JIT code, without a symbol
// and entirely unknown, and a name with special characters. 60 samples of 10 ms.
model::Profile SampleProfile();

}  // namespace gpusonde::exporters
