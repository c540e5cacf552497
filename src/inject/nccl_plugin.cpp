// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin: the tables ncclProfiler_v3 to _v6, of which NCCL takes the newest that it knows.
#include <string.h>

#include "inject/collectives.h"
#include "inject/control.h"
#include "inject/nccl_chain.h"
#include "inject/sink.h"
#include "wire/nvidia/nccl_profiler.h"

namespace gpusonde::inject {
namespace {

void CopyName(char (&to)[64], const char* from) {
  if (from != nullptr) memcpy(to, from, strnlen(from, sizeof to - 1));
}

gpusonde_nccl_result Init(void** context, int* mask, Communicator described, const char* name,
                          gpusonde_nccl_log log) {
  if (context == nullptr || mask == nullptr) return GPUSONDE_NCCL_INTERNAL_ERROR;
  *context = nullptr;
  if (IsForkedChild()) return GPUSONDE_NCCL_SUCCESS;  // as without a listener
  described.mask = mask;
  CopyName(described.name, name);
  Start();
  Communicator* communicator = JoinCommunicator(described);
  if (communicator == nullptr)
    return GPUSONDE_NCCL_SUCCESS;  // its events come without a context, and are ignored
  ChainInit(*communicator, log);
  SetCollectivesWanted(HasConsumers());
  *context = communicator;
  return GPUSONDE_NCCL_SUCCESS;
}

gpusonde_nccl_result Finalize(void* context) {
  Communicator* communicator = CommunicatorOf(context);
  if (communicator == nullptr) return GPUSONDE_NCCL_SUCCESS;
  ChainFinalize(*communicator);
  LeaveCommunicator(communicator);
  return GPUSONDE_NCCL_SUCCESS;
}

void* BeginOwn(Communicator& communicator, const gpusonde_nccl_event_v3& event) {
  if (event.type == GPUSONDE_NCCL_KERNEL_CH && IsOwnHandle(event.parent))
    return BeginChannel(event.parent, event.kernel_channel, 0);
  if (event.type != GPUSONDE_NCCL_COLL) return nullptr;
  const gpusonde_nccl_coll_v3& coll = event.coll;
  DescribeCommunicator(communicator, coll.communicator, event.rank, coll.communicator_name);
  return BeginCall(communicator, {.sequence = coll.sequence,
                                  .operation = coll.operation,
                                  .count = coll.count,
                                  .root = coll.root,
                                  .datatype = coll.datatype,
                                  .channels = coll.max_channels,
                                  .algorithm = coll.algorithm,
                                  .protocol = coll.protocol});
}

void* BeginOwn(Communicator& communicator, uint64_t type, void* parent, const gpusonde_nccl_kernel_ch& kernel,
               const gpusonde_nccl_coll& coll) {
  if (type == GPUSONDE_NCCL_KERNEL_CH && IsOwnHandle(parent))
    return BeginChannel(parent, kernel.channel, kernel.timer);
  if (type != GPUSONDE_NCCL_COLL) return nullptr;
  return BeginCall(communicator, {.sequence = coll.sequence,
                                  .operation = coll.operation,
                                  .count = coll.count,
                                  .root = coll.root,
                                  .datatype = coll.datatype,
                                  .channels = coll.channels,
                                  .algorithm = coll.algorithm,
                                  .protocol = coll.protocol});
}

void* BeginOwn(Communicator& communicator, const gpusonde_nccl_event_v4& event) {
  gpusonde_nccl_coll coll{};
  memcpy(&coll, event.words, sizeof event.words);  // all but `group`
  return BeginOwn(communicator, event.type, event.parent, event.kernel_ch, coll);
}

void* BeginOwn(Communicator& communicator, const gpusonde_nccl_event_v5& event) {
  return BeginOwn(communicator, event.type, event.parent, event.kernel_ch, event.coll);
}

template <class Event>
gpusonde_nccl_result StartEvent(void* context, void** handle, Event* event) {
  if (handle == nullptr || event == nullptr) return GPUSONDE_NCCL_SUCCESS;
  *handle = nullptr;
  Communicator* communicator = CommunicatorOf(context);
  if (communicator == nullptr) return GPUSONDE_NCCL_SUCCESS;
  void* chained = ChainStart(*communicator, *event);
  void* own = BeginOwn(*communicator, *event);
  if (own != nullptr) SetChainedHandle(own, chained);
  *handle = own != nullptr ? own : chained;
  return GPUSONDE_NCCL_SUCCESS;
}

gpusonde_nccl_result StopEvent(void* handle) {
  if (!IsOwnHandle(handle)) {
    ChainStop(handle);
    return GPUSONDE_NCCL_SUCCESS;
  }
  ChainStop(ChainedHandle(handle));
  EndEvent(handle);
  return GPUSONDE_NCCL_SUCCESS;
}

void RecordOwnState(void*, int, const gpusonde_nccl_state_v3*) {}  // has no times of the GPU

void RecordOwnState(void* handle, int state, const gpusonde_nccl_state_v4* arguments) {
  if (state == GPUSONDE_NCCL_STATE_KERNEL_CH_STOP && arguments != nullptr)
    RecordChannelEnd(handle, arguments->timer);
}

template <class Arguments>
gpusonde_nccl_result RecordState(void* handle, int state, Arguments* arguments) {
  if (!IsOwnHandle(handle)) {
    ChainRecordState(handle, state, arguments);
    return GPUSONDE_NCCL_SUCCESS;
  }
  ChainRecordState(ChainedHandle(handle), state, arguments);
  RecordOwnState(handle, state, arguments);
  return GPUSONDE_NCCL_SUCCESS;
}

gpusonde_nccl_result InitV3(void** context, int* mask) {
  return Init(context, mask, {.version = 3, .rank = -1}, nullptr, nullptr);
}

gpusonde_nccl_result InitV4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks,
                            int rank, gpusonde_nccl_log log) {
  return Init(context, mask,
              {.version = 4, .communicator = hash, .rank = rank, .ranks = ranks, .nodes = nodes}, name, log);
}

template <uint32_t version>
gpusonde_nccl_result InitV5(void** context, uint64_t hash, int* mask, const char* name, int nodes, int ranks,
                            int rank, gpusonde_nccl_log log) {
  return Init(context, mask,
              {.version = version, .communicator = hash, .rank = rank, .ranks = ranks, .nodes = nodes}, name,
              log);
}

}  // namespace
}  // namespace gpusonde::inject

#define EXPORTED extern "C" __attribute__((visibility("default")))
#define TABLE(init_function, event, state)               \
  {.name = "gpusonde",                                   \
   .init = init_function,                                \
   .start = gpusonde::inject::StartEvent<event>,         \
   .stop = gpusonde::inject::StopEvent,                  \
   .record_state = gpusonde::inject::RecordState<state>, \
   .finalize = gpusonde::inject::Finalize}

// Declared first, as constants are not exported otherwise. NOLINTBEGIN(readability-identifier-naming): NCCL's
// names
EXPORTED const gpusonde_nccl_profiler_v3 ncclProfiler_v3;
EXPORTED const gpusonde_nccl_profiler_v4 ncclProfiler_v4;
EXPORTED const gpusonde_nccl_profiler_v5 ncclProfiler_v5;
EXPORTED const gpusonde_nccl_profiler_v5 ncclProfiler_v6;
const gpusonde_nccl_profiler_v3 ncclProfiler_v3 =
    TABLE(gpusonde::inject::InitV3, gpusonde_nccl_event_v3, gpusonde_nccl_state_v3);
const gpusonde_nccl_profiler_v4 ncclProfiler_v4 =
    TABLE(gpusonde::inject::InitV4, gpusonde_nccl_event_v4, gpusonde_nccl_state_v4);
const gpusonde_nccl_profiler_v5 ncclProfiler_v5 =
    TABLE(gpusonde::inject::InitV5<5>, gpusonde_nccl_event_v5, gpusonde_nccl_state_v4);
const gpusonde_nccl_profiler_v5 ncclProfiler_v6 =
    TABLE(gpusonde::inject::InitV5<6>, gpusonde_nccl_event_v5, gpusonde_nccl_state_v4);
// NOLINTEND(readability-identifier-naming)
