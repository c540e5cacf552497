// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The collectives that NCCL reports through its profiler plugin (nccl_plugin.cpp): kept in slots that NCCL's
// threads fill without a lock or a system call, and sent by the library's thread four times a second.
namespace gpusonde::inject {

inline constexpr size_t kMaxCommunicators = 1024;
inline constexpr size_t kMaxChannels = 64;  // NCCL's MAXCHANNELS

// A communicator of this process, as NCCL described it. It is the context that NCCL passes with events.
struct Communicator {
  uint32_t used = 0;          // atomic
  uint32_t version = 0;       // of the plugin's interface through which NCCL calls
  uint64_t communicator = 0;  // NCCL's hash, the same on all ranks; 0: not known yet (version 3)
  int32_t rank = 0;           // -1: not known yet
  int32_t ranks = 0;          // 0: not known
  int32_t nodes = 0;
  uint64_t joined_ns = 0;
  uint64_t left_ns = 0;
  uint64_t dropped = 0;      // atomic: collectives that found no free slot
  int* mask = nullptr;       // where NCCL reads which events are wanted
  void* chained = nullptr;   // the context of the chained plugin
  bool has_chained = false;  // it may be null
  char name[64] = {};
};

// The events that an interface of this version knows, as a mask.
constexpr int KnownEvents(uint32_t version) { return version <= 4 ? 0xff : version == 5 ? 0xfff : 0x7fff; }

// The library's handles for events. NCCL treats them as pointers and never follows them. Their upper 16 bits
// make them non-canonical addresses, so that they can't be confused with the handles of a chained plugin.
bool IsOwnHandle(const void* handle);

// Joins a communicator; null if there are too many. Starts the library if it has not started. Thread-safe, as
// all here.
Communicator* JoinCommunicator(const Communicator& described);
// Sends what is left of it and frees it.
void LeaveCommunicator(Communicator* communicator);
// The communicator of a context that NCCL passes; null for null and for anything else.
Communicator* CommunicatorOf(void* context);
// What version 3 tells with each call only.
void DescribeCommunicator(Communicator& communicator, uint64_t hash, int32_t rank, const char* name);

struct CallDescription {
  uint64_t sequence;
  const char* operation;
  uint64_t count;
  int32_t root;
  const char* datatype;
  uint32_t channels;
  const char* algorithm;
  const char* protocol;
};

// A collective is being enqueued. Returns its handle; null without a consumer, and if there is no slot
// (counted).
void* BeginCall(Communicator& communicator, const CallDescription& call);
// Its kernel began on a channel. Returns the handle of that; null for a call that is no longer known.
void* BeginChannel(const void* call, uint32_t channel, uint64_t gpu_ns);
// The kernel's time of the end of a channel, by the GPU's clock.
void RecordChannelEnd(const void* handle, uint64_t gpu_ns);
// The event has ended: the enqueueing of a call, or the kernel's work on a channel.
void EndEvent(const void* handle);

// The chained plugin's handle of an event of ours; null if it has none. Set for each event, as its place may
// have one of an earlier event.
void SetChainedHandle(const void* handle, void* chained);
void* ChainedHandle(const void* handle);

// Whether there is a consumer; without, NCCL is asked for no events but those of a chained plugin.
void SetCollectivesWanted(bool wanted);
// The same, and sends what there is. For the library's thread, at each tick.
void PollCollectives(bool wanted);

}  // namespace gpusonde::inject
