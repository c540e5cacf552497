// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The library's USDT probes: provider gpusonde; state, records, launch and snapshot, one for each channel of
// wire/gpu_event.h, each with two arguments: where a batch lies, and how long it is.
//
// The kernel counts a probe's semaphore up once per process, however many listeners attach. A listener that
// attaches later is therefore not noticed by its attaching to the first three; it asks for what it has missed
// by attaching to `snapshot`, until it has it.
//
// They are written by hand because of one byte: the kernel turns a probe's nop into a cheap call only if it
// is 5 bytes long (0.61 us a hit on 6.18; with the one-byte nop of systemtap's sdt.h it stays a trap, 0.79
// us).
namespace gpusonde::inject {

// Whether somebody is attached to the channel's probe: the kernel counts them in a variable of ours.
bool ProbeHeard(uint32_t channel);

// Whether a listener has said, by attaching to the probe `ready`, that it takes stacks of this process. That
// it has attached to `launch` doesn't say so yet: the kernel counts a semaphore up before the listener's
// program is in place.
bool ListenerReady();

// Passes by the channel's probe. The frame that calls this is the second from below that a stack shows.
void FireProbe(uint32_t channel, const void* batch, size_t bytes);

}  // namespace gpusonde::inject
