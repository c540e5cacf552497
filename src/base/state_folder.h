// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpusonde {

// The default data folder of `gpusonde up`: /var/lib/gpusonde for root, else $XDG_STATE_HOME/gpusonde, else
// ~/.local/state/gpusonde (XDG Base Directory Specification 0.8). Doesn't create it.
std::string DefaultStateFolder();

// The cache folder of all commands: $XDG_CACHE_HOME/gpusonde, else /var/cache/gpusonde for root, else
// ~/.cache/gpusonde. Doesn't create it.
std::string CacheFolder();

}  // namespace gpusonde
