// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The library's USDT probes, of provider gpusonde: state, records, launch and snapshot, one for each channel
// of wire/gpu_event.h, with two arguments: the address and the size of a batch. The others, `ready` and
// `budget0` to `budget12`, are never hit and exist for their semaphores: the one way in which a consumer that
// only attaches can tell the library anything.
//
// The kernel increments a probe's semaphore once per process, however many consumers attach. The library
// can't see a second consumer attach to the first three; a consumer therefore attaches to `snapshot` as well,
// until it has received what it missed.
//
// The probes are handwritten because the kernel optimises a probe from a trap to a call only if its nop is 5
// bytes long (0.61 us a hit on 6.18); with the one-byte nop of systemtap's sdt.h it stays a trap (0.79 us).
namespace gpusonde::inject {

// Whether a consumer is attached to the channel's probe, according to its semaphore.
bool ProbeAttached(uint32_t channel);

// Whether a consumer has attached to the probe `ready`, by which it signals that it can unwind this process's
// stacks. Being attached to `launch` is not enough: the kernel increments a semaphore before the consumer's
// BPF program is in place.
bool ConsumerReady();

// The lowest budget that a consumer has given by attaching to its probe (GPUSONDE_GPU_BUDGETS), in parts per
// million; `otherwise` if none has.
uint32_t BudgetPpm(uint32_t otherwise);

// Hits the channel's probe. In the stack taken there, the caller is the second frame from the leaf.
void FireProbe(uint32_t channel, const void* batch, size_t bytes);

}  // namespace gpusonde::inject
