// SPDX-License-Identifier: Apache-2.0
#include "base/state_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace gpusonde {

std::string DefaultStateFolder() {
  if (::geteuid() == 0) return "/var/lib/gpusonde";
  const char* state = std::getenv("XDG_STATE_HOME");
  // The specification says to ignore a relative path.
  if (state != nullptr && state[0] == '/') return std::string(state) + "/gpusonde";
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.local/state/gpusonde";
}

}  // namespace gpusonde
