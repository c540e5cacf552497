// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnccl.so.2 (simulated): collectives of processes on one machine that move no data. An
// operation begins on a rank when those before it have ended there, and ends when all ranks have begun it,
// after SIMGPU_NCCL_NS. It does not use a simulated GPU, where the end of work must be known when it is
// submitted, but a thread for each communicator, which reports to the profiler plugin what NCCL's proxy
// thread does. ncclCommGetAsyncError returns ncclInProgress until all has ended: that is how programs here
// wait.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "simgpu/nccl/profiler.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace simgpu::nccl {
namespace {

constexpr int kSuccess = 0, kSystemError = 2, kInvalidArgument = 4, kInProgress = 7;
constexpr int kMaxRanks = 1024;
constexpr int kNodes = 1;

uint64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

long Setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atol(text);
}

// What the ranks of a communicator share: how many operations each has begun.
struct Shared {
  uint32_t changes;
  uint32_t attached;
  uint64_t begun[kMaxRanks];
};

struct Operation {
  uint64_t number;
  const char* name;
  void* event;  // the plugin's handle
  int mask;     // of wanted events when it was called
};

constexpr const char* kTypes[] = {"ncclInt8",   "ncclUint8",   "ncclInt32",   "ncclUint32",  "ncclInt64",
                                  "ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16"};

}  // namespace

struct Communicator {
  std::string path;
  Shared* shared = nullptr;
  int rank = 0, ranks = 0;
  uint8_t channels = 2;
  long duration_ns = 100'000;
  void* context = nullptr;  // of the plugin
  std::map<std::string, uint64_t> sequences;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Operation> queue;  // the first is under way
  uint64_t called = 0;
  bool stop = false;
  std::thread thread;

  void Run();
  void Execute(const Operation& operation);
  void AwaitAll(uint64_t number);
  void ReportProxy(const Operation& operation);
  int Call(const char* name, size_t count, int type, int root, void* stream);
};

void Communicator::AwaitAll(uint64_t number) {
  for (;;) {
    const uint32_t seen = __atomic_load_n(&shared->changes, __ATOMIC_ACQUIRE);
    int there = 0;
    while (there < ranks && __atomic_load_n(&shared->begun[there], __ATOMIC_ACQUIRE) >= number) ++there;
    if (there == ranks) return;
    {
      const std::lock_guard lock(mutex);
      if (stop) return;
    }
    const timespec timeout{.tv_sec = 0, .tv_nsec = 100'000'000};
    syscall(SYS_futex, &shared->changes, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  }
}

// One transfer through a network proxy.
void Communicator::ReportProxy(const Operation& operation) {
  constexpr int kProxy = GPUSONDE_NCCL_PROXY_OP | GPUSONDE_NCCL_PROXY_STEP | GPUSONDE_NCCL_NET_PLUGIN;
  if ((operation.mask & kProxy) == 0) return;
  Profiler& profiler = Profiler::Get();
  gpusonde_nccl_event_v5 proxy{};
  proxy.type = GPUSONDE_NCCL_PROXY_OP;
  proxy.parent = operation.event;
  proxy.rank = rank;
  proxy.proxy_op = {.pid = getpid(),
                    .channel = 0,
                    .peer = (rank + 1) % ranks,
                    .steps = 1,
                    .chunk_bytes = 4096,
                    .is_send = 1};
  void* op = profiler.Start(context, proxy);
  gpusonde_nccl_event_v5 step{};
  step.type = GPUSONDE_NCCL_PROXY_STEP;
  step.parent = op;
  step.rank = rank;
  void* transfer = profiler.Start(context, step);
  gpusonde_nccl_state_v4 bytes{.bytes = 4096};
  profiler.RecordState(transfer, GPUSONDE_NCCL_STATE_PROXY_STEP_FIRST, &bytes);
  profiler.Stop(transfer);
  profiler.Stop(op);
}

void Communicator::Execute(const Operation& operation) {
  Profiler& profiler = Profiler::Get();
  void* running[256] = {};
  const bool shows_kernels = (operation.mask & GPUSONDE_NCCL_KERNEL_CH) != 0;
  for (uint8_t channel = 0; shows_kernels && channel < channels; ++channel) {
    gpusonde_nccl_event_v5 kernel{};
    kernel.type = GPUSONDE_NCCL_KERNEL_CH;
    kernel.parent = operation.event;
    kernel.rank = rank;
    kernel.kernel_ch = {.channel = channel, .timer = NowNs()};
    running[channel] = profiler.Start(context, kernel);
  }
  __atomic_store_n(&shared->begun[rank], operation.number, __ATOMIC_RELEASE);
  __atomic_fetch_add(&shared->changes, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &shared->changes, FUTEX_WAKE, kMaxRanks, nullptr, nullptr, 0);
  AwaitAll(operation.number);
  ReportProxy(operation);
  const timespec duration{.tv_sec = 0, .tv_nsec = duration_ns};
  nanosleep(&duration, nullptr);
  for (uint8_t channel = 0; shows_kernels && channel < channels; ++channel) {
    gpusonde_nccl_state_v4 timer{.timer = NowNs()};
    profiler.RecordState(running[channel], GPUSONDE_NCCL_STATE_KERNEL_CH_STOP, &timer);
    profiler.Stop(running[channel]);
  }
}

void Communicator::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stop || !queue.empty(); });
    if (stop) return;
    const Operation operation = queue.front();
    lock.unlock();
    Execute(operation);
    lock.lock();
    queue.pop_front();
  }
}

// As src/plugin/profiler.cc and src/enqueue.cc: parents are reported if any of their children is wanted.
int Communicator::Call(const char* name, size_t count, int type, int root, void* stream) {
  Profiler& profiler = Profiler::Get();
  const int mask = profiler.mask();
  const bool wanted = (mask & ~GPUSONDE_NCCL_PROXY_CTRL) != 0;
  void *group_api = nullptr, *api = nullptr, *group = nullptr, *event = nullptr;
  if (wanted) {
    gpusonde_nccl_event_v5 descriptor{};
    descriptor.rank = rank;
    descriptor.type = GPUSONDE_NCCL_GROUP_API;
    group_api = profiler.Start(context, descriptor);
    descriptor.type = GPUSONDE_NCCL_COLL_API;
    descriptor.parent = group_api;
    descriptor.words[0] = reinterpret_cast<uint64_t>(name);
    descriptor.words[1] = count;
    descriptor.words[4] = reinterpret_cast<uint64_t>(stream);
    api = profiler.Start(context, descriptor);
    profiler.Stop(api);
    descriptor = {};
    descriptor.type = GPUSONDE_NCCL_GROUP;
    group = profiler.Start(context, descriptor);
    descriptor.type = GPUSONDE_NCCL_COLL;
    descriptor.parent = api;
    descriptor.rank = rank;
    descriptor.coll = {.sequence = sequences[name],
                       .operation = name,
                       .send_buffer = nullptr,
                       .receive_buffer = nullptr,
                       .count = count,
                       .root = root,
                       .datatype = kTypes[type],
                       .channels = channels,
                       .warps = 16,
                       .algorithm = "RING",
                       .protocol = "SIMPLE",
                       .group = group};
    event = profiler.Start(context, descriptor);
  }
  ++sequences[name];
  if (wanted) {
    profiler.Stop(event);
    profiler.Stop(group);
    profiler.Stop(group_api);
  }
  {
    const std::lock_guard lock(mutex);
    queue.push_back({++called, name, event, mask});
  }
  changed.notify_one();
  return kSuccess;
}

struct UniqueId {
  char internal[128];
};

EXPORTED int ncclGetVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = 22900;
  return kSuccess;
}

EXPORTED int ncclGetUniqueId(UniqueId* id) {
  if (id == nullptr) return kInvalidArgument;
  return getrandom(id, sizeof *id, 0) == sizeof *id ? kSuccess : kSystemError;
}

EXPORTED int ncclCommInitRank(Communicator** communicator, int ranks, UniqueId id, int rank) {
  if (communicator == nullptr || ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks)
    return kInvalidArgument;
  uint64_t hash = 0;
  std::memcpy(&hash, id.internal, sizeof hash);
  auto* made = new Communicator;
  made->path = "/simgpu-nccl-" + std::to_string(hash);
  made->rank = rank;
  made->ranks = ranks;
  made->channels = static_cast<uint8_t>(Setting("SIMGPU_NCCL_CHANNELS", 2));
  made->duration_ns = Setting("SIMGPU_NCCL_NS", 100'000);
  const int fd = shm_open(made->path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof(Shared)) == 0)
    memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (memory == MAP_FAILED) {
    delete made;
    return kSystemError;
  }
  made->shared = static_cast<Shared*>(memory);
  __atomic_fetch_add(&made->shared->attached, 1, __ATOMIC_RELAXED);
  made->context = Profiler::Get().Init(hash, "simulated", kNodes, ranks, rank);
  made->thread = std::thread([made] { made->Run(); });
  *communicator = made;
  return kSuccess;
}

EXPORTED int ncclCommDestroy(Communicator* communicator) {
  if (communicator == nullptr) return kSuccess;
  {
    const std::lock_guard lock(communicator->mutex);
    communicator->stop = true;
  }
  communicator->changed.notify_one();
  communicator->thread.join();
  Profiler::Get().Finalize(communicator->context);
  if (__atomic_sub_fetch(&communicator->shared->attached, 1, __ATOMIC_RELAXED) == 0)
    shm_unlink(communicator->path.c_str());
  munmap(communicator->shared, sizeof(Shared));
  delete communicator;
  return kSuccess;
}

EXPORTED int ncclCommGetAsyncError(Communicator* communicator, int* error) {
  if (communicator == nullptr || error == nullptr) return kInvalidArgument;
  const std::lock_guard lock(communicator->mutex);
  *error = communicator->queue.empty() ? kSuccess : kInProgress;
  return kSuccess;
}

EXPORTED int ncclAllReduce(const void*, void*, size_t count, int type, int, Communicator* communicator,
                           void* stream) {
  if (communicator == nullptr || type < 0 || type >= static_cast<int>(std::size(kTypes)))
    return kInvalidArgument;
  return communicator->Call("AllReduce", count, type, 0, stream);
}

EXPORTED int ncclBroadcast(const void*, void*, size_t count, int type, int root, Communicator* communicator,
                           void* stream) {
  if (communicator == nullptr || type < 0 || type >= static_cast<int>(std::size(kTypes)))
    return kInvalidArgument;
  return communicator->Call("Broadcast", count, type, root, stream);
}

}  // namespace simgpu::nccl
