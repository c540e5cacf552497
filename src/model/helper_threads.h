// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/profile.h"

namespace gpusonde::model {

// Marks, by index into profile.threads, the threads that profilers run inside a profiled program: gpusonde's
// own and CUPTI's. A thread is one when its name says so, or when one of its stacks begins in their code:
// CUPTI's threads on real drivers keep the program's name.
std::vector<bool> HelperThreads(const Profile& profile);

}  // namespace gpusonde::model
