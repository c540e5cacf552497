// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/collectives.h"
#include "wire/nvidia/nccl_profiler.h"

// Another profiler plugin, named in GPUSONDE_NCCL_CHAIN, that gets NCCL's calls as if NCCL had loaded it. It
// is called through its newest interface that is not newer than the one through which NCCL calls us;
// descriptors are translated as NCCL itself does for older plugins.
namespace gpusonde::inject {

inline constexpr const char* kChainVariable = "GPUSONDE_NCCL_CHAIN";

// Opens the library at the first call and initialises it for this communicator. If there is none, it can't be
// opened, or it refuses, the communicator has no chained context and the other functions do nothing for it.
void ChainInit(Communicator& communicator, gpusonde_nccl_log log);
void ChainFinalize(Communicator& communicator);

// The events that it wants now; 0 without a chained plugin. It may change them at any time.
int ChainMask();

// Forward an event that NCCL started through this version; the handle of the chained plugin, null if it has
// none.
void* ChainStart(Communicator& communicator, const gpusonde_nccl_event_v3& event);
void* ChainStart(Communicator& communicator, const gpusonde_nccl_event_v4& event);
void* ChainStart(Communicator& communicator, const gpusonde_nccl_event_v5& event);
// Forward with a handle of the chained plugin; null is ignored.
void ChainStop(void* handle);
void ChainRecordState(void* handle, int state, gpusonde_nccl_state_v3* arguments);
void ChainRecordState(void* handle, int state, gpusonde_nccl_state_v4* arguments);

}  // namespace gpusonde::inject
