// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace gpusonde::symbols {

// Reads debug information for a profiler in a process of its own (`gpusonde lines`). Debug information is
// large, slow to read and untrusted, so its memory, its time and crashes are kept away from the profiler.
// Answers the requests at `socket` until the other end is closed.
//
// If a file's debug information isn't on this machine and DEBUGINFOD_URLS is set, it is requested from those
// servers through libdebuginfod.
Status ServeLines(int socket);

}  // namespace gpusonde::symbols
