// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "workload.h"

namespace gpusonde::synthetic {

// One SQLite export with all ranks, each a process on a device of its own.
Status WriteNsys(const Plan& plan, const std::string& path);

// One Kineto trace per rank: PATH with the rank's number in place of "{}", which it must have if there are
// several. `operators`: cpu_op events per kernel.
Status WriteKineto(const Plan& plan, const std::string& path, int operators);

}  // namespace gpusonde::synthetic
