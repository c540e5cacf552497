// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpusonde {

// Where `gpusonde up` keeps its data unless told otherwise: /var/lib/gpusonde for root, else
// $XDG_STATE_HOME/gpusonde, else ~/.local/state/gpusonde (XDG Base Directory Specification 0.8). Not made
// here.
std::string DefaultStateFolder();

// What can be made again, for all commands: $XDG_CACHE_HOME/gpusonde, else /var/cache/gpusonde for root, else
// ~/.cache/gpusonde. Not made here.
std::string CacheFolder();

}  // namespace gpusonde
