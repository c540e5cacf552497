// SPDX-License-Identifier: Apache-2.0
// Words of the client that call the library's profiler plugin (version 5) as NCCL does:
//   join=HASH         a communicator is initialised; the next words are of it
//   collectives=N     N collectives, one after the other
//   call begin        a collective is called; its kernel begins
//   leave             the communicator is destroyed
//   leaves=N          N communicators are initialised and destroyed, one after the other; prints how long the
//                     latter takes, ms
//   nccl=N            forks N times while two threads join and leave; prints how many children can't do the
//   same
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "client.h"
#include "wire/nvidia/nccl_profiler.h"

namespace {

const gpusonde_nccl_profiler_v5& Plugin() {
  void* library = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  return *static_cast<const gpusonde_nccl_profiler_v5*>(dlsym(library, "ncclProfiler_v5"));
}

int g_mask = 0;
void* g_communicator = nullptr;

void* Join(uint64_t hash) {
  void* communicator = nullptr;
  if (Plugin().init(&communicator, hash, &g_mask, "world", 1, 2, 0, nullptr) != GPUSONDE_NCCL_SUCCESS)
    std::abort();
  return communicator;
}

void* Start(gpusonde_nccl_event_v5 event) {
  void* handle = nullptr;
  Plugin().start(g_communicator, &handle, &event);
  return handle;
}

void Stop(void* handle) {
  if (handle != nullptr) Plugin().stop(handle);
}

void* Call() {
  gpusonde_nccl_event_v5 event{};
  event.type = GPUSONDE_NCCL_COLL;
  event.coll.operation = "AllReduce";
  event.coll.datatype = "ncclFloat32";
  event.coll.algorithm = "RING";
  event.coll.protocol = "SIMPLE";
  event.coll.channels = 1;
  return Start(event);
}

void* BeginKernel(void* call) {
  gpusonde_nccl_event_v5 event{};
  event.type = GPUSONDE_NCCL_KERNEL_CH;
  event.parent = call;
  return Start(event);
}

void* g_call = nullptr;

void Collectives(long count) {
  for (long i = 0; i < count; ++i) {
    void* const call = Call();
    void* const kernel = BeginKernel(call);
    Stop(call);
    Stop(kernel);
  }
}

void Leaves(long count) {
  using Clock = std::chrono::steady_clock;
  Clock::duration taken{};
  for (long i = 0; i < count; ++i) {
    void* const communicator = Join(static_cast<uint64_t>(i + 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // a tick of the library's thread
    const Clock::time_point begin = Clock::now();
    Plugin().finalize(communicator);
    taken += Clock::now() - begin;
  }
  std::printf("%ld\n",
              static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()));
  std::fflush(stdout);
}

}  // namespace

bool DoNccl(std::string_view word, long value) {
  if (word == "join") {
    g_communicator = Join(static_cast<uint64_t>(value));
  } else if (word == "collectives") {
    Collectives(value);
  } else if (word == "call") {
    g_call = Call();
  } else if (word == "begin") {
    BeginKernel(g_call);
  } else if (word == "leave") {
    Plugin().finalize(g_communicator);
  } else if (word == "leaves") {
    Leaves(value);
  } else if (word == "nccl") {
    ForkWithin(value, [] { Plugin().finalize(Join(1)); });
  } else {
    return false;
  }
  return true;
}
