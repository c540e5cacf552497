// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde::app {

// From now on the first SIGINT, SIGTERM or SIGHUP only requests a stop; a second one ends the program at
// once. A SIGHUP that is ignored stays so.
void CatchStopSignals();

// Returns when a stop was requested, at once if it already was. Call CatchStopSignals first.
void WaitForStopSignal();

// Whether a stop was requested. Call CatchStopSignals first.
bool StopRequested();

}  // namespace gpusonde::app
