// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde {

// Memory that is kept for when none is left, in processes with a limit (setrlimit(2), RLIMIT_DATA): `operator
// new` draws on it where an exception is being handled or unwinds the stack, since a destructor that fails to
// allocate ends the process, and on threads that called DrawOnMemoryReserve. Everywhere else it throws
// std::bad_alloc, which frees what the caller had. Thread-safe.

// Sets 4 MB aside, and the new handler of this process.
void KeepMemoryInReserve();

// Sets memory aside again if it was drawn on and there is some; does nothing in a process without a reserve.
// Of the memory that failed work has freed.
void RefillMemoryReserve();

// From now on this thread draws on it: one that must go on for others, and needs little.
void DrawOnMemoryReserve();

}  // namespace gpusonde
