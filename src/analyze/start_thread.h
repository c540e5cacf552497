// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace gpusonde::analyze {

// Starts one more helper; false if the system has no memory or number left for one. The work must be such
// that fewer threads do all of it.
template <class Work>
bool StartThread(std::vector<std::jthread>& threads, Work&& work) {
  try {
    threads.emplace_back(std::forward<Work>(work));
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace gpusonde::analyze
