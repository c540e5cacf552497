// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/profile.h"

namespace gpusonde::exporters {

// For tests: a small profile with everything that formats treat differently. Two processes of one name, two
// threads in one of them, an inlined function, frames of the kernel, of generated code, without a symbol and
// of nothing known, and a name that no format would choose. 60 samples of 10 ms.
model::Profile SampleProfile();

}  // namespace gpusonde::exporters
