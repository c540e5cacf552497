// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde::app {

// From here on Ctrl-C, SIGTERM and SIGHUP ask the program to end instead of ending it; whoever asks a second
// time still ends it at once.
void CatchStopSignals();

// Returns when the program was asked to end, also if that was before. After CatchStopSignals.
void WaitForStopSignal();

// Whether the program was asked to end. After CatchStopSignals.
bool StopRequested();

}  // namespace gpusonde::app
