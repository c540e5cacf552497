// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace gpusonde::symbols {

// Reads debug information for a profiler, in a process of its own (`gpusonde lines`): debug information is
// large, slow to read and the work of strangers, so neither its memory nor its time nor a crash is the
// profiler's. Answers the requests at `socket` until the other end is closed.
//
// Where a file's debug information isn't on this machine, it is asked for at the servers in DEBUGINFOD_URLS,
// if that is set, by the library libdebuginfod.
Status ServeLines(int socket);

}  // namespace gpusonde::symbols
