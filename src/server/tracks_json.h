// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "store/tracks/launched_work.h"
#include "store/tracks/tracks.h"

namespace gpusonde::server {

// The bodies of /api/v1/timeline and /api/v1/work, as docs/api.md describes them.
std::string TracksJson(const store::Tracks& tracks);
std::string WorkJson(const store::LaunchedWork& launched);

}  // namespace gpusonde::server
