// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"

namespace gpusonde::server {

// The first two frames of a stack in a flame graph: a process by its command line, and one of its threads.
//
// Processes and threads with less than 1 % of the time share a frame with others of the same name ("cc1plus
// (842 processes)"): the thousand processes of a build would otherwise be a thousand slivers.
struct TreeRoots {
  struct Function {
    std::string name;
    std::string_view kind;  // "process" or "thread"
  };
  std::vector<Function> functions;
  std::vector<std::array<int32_t, 2>> pairs;  // function numbers of a process and a thread
  std::vector<int32_t> pair_of_thread;        // by the profile's thread
};

// Numbers the functions from `first` on.
TreeRoots RootsOf(const model::Profile& profile, int32_t first);

}  // namespace gpusonde::server
