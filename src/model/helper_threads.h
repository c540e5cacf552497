// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/profile.h"

namespace gpusonde::model {

// Marks, by index into profile.threads, the threads that profilers run inside a profiled program: gpusonde's
// own and CUPTI's. Recognised by name, or by a stack that begins in their code: with real drivers, CUPTI's
// threads keep the program's name.
std::vector<bool> HelperThreads(const Profile& profile);

}  // namespace gpusonde::model
