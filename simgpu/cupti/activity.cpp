// SPDX-License-Identifier: Apache-2.0
// Activity records: which kinds are enabled, and when the client gets them.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <queue>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simgpu/cupti/buffers.h"
#include "simgpu/cupti/cupti.h"

namespace simgpu::cupti {
namespace {

constexpr uint32_t kKinds = 64;
// The worker checks for finished operations this often while any are pending.
constexpr int64_t kWorkerPeriodNs = 5'000'000;
// An operation that ends within this time of its call may be delivered before the call returns.
constexpr int64_t kEarlyNs = 50'000;

std::array<std::atomic<bool>, kKinds> enabled;
std::atomic<uint32_t> finalizations = 0;

struct Pending {
  int64_t due_ns;
  uint32_t kind;
  Operation operation;
  Buffers::Thread thread;  // that submitted it
  bool operator>(const Pending& other) const { return due_ns > other.due_ns; }
};

// Operations whose records are not written yet, and the thread that writes them when they are due (CUPTI has
// one, too). It runs only while a kind is enabled, and sleeps while nothing is pending.
class Worker {
 public:
  static Worker& Get() {
    static Worker& worker = *new Worker;
    return worker;
  }

  void Start() {
    const std::lock_guard lock(mutex_);
    stopping_ = false;
    if (running_) return;
    running_ = true;
    std::thread([this] { Run(); }).detach();
  }

  void Stop() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    // A client may call this from a buffer callback, on the worker itself.
    if (std::this_thread::get_id() != id_) stopped_.wait(lock, [this] { return !running_; });
  }

  void Add(const Pending& pending) {
    const std::lock_guard lock(mutex_);
    pending_.push_back(pending);
    std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
    if (pending_.size() == 1) wake_.notify_all();
  }

  // Writes the records of operations that ended before now_ns (`when_due`: and are due); `forced`: all others
  // too, without times. One thread at a time: a flush waits until another thread has written the records that
  // it claimed.
  void Write(int64_t now_ns, bool when_due, bool forced) {
    std::vector<Pending> ready;
    {
      std::unique_lock lock(mutex_);
      written_.wait(lock, [this] { return !writing_; });
      writing_ = true;
      if (when_due) {
        while (!pending_.empty() && pending_.front().due_ns <= now_ns) {
          std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
          ready.push_back(pending_.back());
          pending_.pop_back();
        }
      } else {
        const auto later = std::partition(pending_.begin(), pending_.end(), [&](const Pending& pending) {
          return !forced && pending.operation.end_ns > now_ns;
        });
        ready.assign(later, pending_.end());
        pending_.erase(later, pending_.end());
        std::make_heap(pending_.begin(), pending_.end(), std::greater<>());
      }
    }
    for (const Pending& pending : ready) {
      const bool ended = pending.operation.end_ns <= now_ns;
      Buffers::Get().Write(MakeRecord(pending.operation, pending.kind, ended && !Chance(TheKnobs().zero)),
                           pending.thread);
    }
    const std::lock_guard lock(mutex_);
    writing_ = false;
    written_.notify_all();
  }

  void DropPending() {
    const std::lock_guard lock(mutex_);
    pending_.clear();
  }

  // Operations that were pending at a fork belong to the parent.
  void ForgetAll() {
    pending_.clear();
    running_ = false;
    writing_ = false;
  }

  std::atomic<uint32_t> flush_period_ms = 0;

 private:
  Worker() {
    ::pthread_atfork(nullptr, nullptr, [] { Get().ForgetAll(); });
  }

  void Run() {
    ::pthread_setname_np(::pthread_self(), "simgpu-cupti");
    std::unique_lock lock(mutex_);
    id_ = std::this_thread::get_id();
    while (!stopping_) {
      if (pending_.empty())
        wake_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
      else
        wake_.wait_for(lock, std::chrono::nanoseconds(kWorkerPeriodNs), [this] { return stopping_; });
      lock.unlock();
      Write(NowNs(), true, false);
      lock.lock();
    }
    id_ = {};
    running_ = false;
    stopped_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable stopped_;
  std::condition_variable written_;
  std::vector<Pending> pending_;  // a heap, the next due first
  std::thread::id id_;
  bool running_ = false;
  bool stopping_ = false;
  bool writing_ = false;
};

// A graph that was launched while its work was recorded stays instrumented: later launches of it write into
// CUPTI's memory, too (13.0, seen on an H200).
class InstrumentedGraphs {
 public:
  static InstrumentedGraphs& Get() {
    static InstrumentedGraphs& graphs = *new InstrumentedGraphs;
    return graphs;
  }

  void Note(const Operation& operation, bool recorded) {
    const std::lock_guard lock(mutex_);
    if (recorded) ids_.insert(operation.graph_id);
    if (ids_.contains(operation.graph_id)) busy_until_ns_ = std::max(busy_until_ns_, operation.end_ns);
  }

  bool Busy(int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    return now_ns < busy_until_ns_;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<uint32_t> ids_;
  int64_t busy_until_ns_ = 0;
};

// A name stays with a function's address, whatever is loaded there later (13.0, seen on an H200).
class Names {
 public:
  static Names& Get() {
    static Names& names = *new Names;
    return names;
  }

  const char* NameOf(const Operation& kernel) {
    const std::lock_guard lock(mutex_);
    return names_.try_emplace(kernel.function, kernel.name).first->second;
  }

  void Clear() {
    const std::lock_guard lock(mutex_);
    names_.clear();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, const char*> names_;
};

bool Known(uint32_t kind) { return kind < kKinds && RecordBytes(kind) != 0; }

Result Enable(uint32_t kind) {
  if (kind == 0 || kind >= kKinds) return GPUSONDE_CUPTI_ERROR_INVALID_KIND;
  if (Tools() == nullptr) return GPUSONDE_CUPTI_ERROR_NOT_INITIALIZED;
  // Kinds that simgpu doesn't implement are accepted without records, as on some real devices.
  if (!Known(kind)) return GPUSONDE_CUPTI_SUCCESS;
  const bool kernels = kind == GPUSONDE_CUPTI_KIND_KERNEL || kind == GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL;
  if (kernels && TheKnobs().late_enable_ms > 0 && Tools()->any_module()) {
    const timespec delay{TheKnobs().late_enable_ms / 1000, TheKnobs().late_enable_ms % 1000 * 1'000'000};
    ::nanosleep(&delay, nullptr);
  }
  AdjustClock();
  enabled[kind] = true;
  if (!KeepAttached()) {
    enabled[kind] = false;
    return GPUSONDE_CUPTI_ERROR_NOT_COMPATIBLE;
  }
  Worker::Get().Start();
  return GPUSONDE_CUPTI_SUCCESS;
}

Result Disable(uint32_t kind) {
  if (kind == 0 || kind >= kKinds) return GPUSONDE_CUPTI_ERROR_INVALID_KIND;
  enabled[kind] = false;
  KeepAttached();
  return GPUSONDE_CUPTI_SUCCESS;
}

}  // namespace

bool AnyKind() {
  return std::any_of(enabled.begin(), enabled.end(), [](const auto& kind) { return kind.load(); });
}

bool KindEnabled(uint32_t kind) { return enabled[kind].load(std::memory_order_relaxed); }

bool WantsGraphTrace() { return KindEnabled(GPUSONDE_CUPTI_KIND_GRAPH_TRACE); }

void StopActivity() {
  for (auto& kind : enabled) kind = false;
  Worker::Get().Stop();
}

void OnOperation(const Operation& submitted) {
  const uint32_t kind = KindOf(submitted);
  if (submitted.graph_id != 0) InstrumentedGraphs::Get().Note(submitted, kind != 0);
  if (kind == 0 || !Buffers::Get().registered()) return;
  Operation operation = submitted;
  if (kIs13 && operation.kind == OperationKind::kKernel) operation.name = Names::Get().NameOf(submitted);
  const Knobs& knobs = TheKnobs();
  Spin(knobs.activity_ns);
  const int64_t left_ns = operation.end_ns - NowNs();
  const bool early = left_ns < kEarlyNs && Chance(knobs.early);
  // The KERNEL kind serialises kernels, unlike CONCURRENT_KERNEL.
  if ((early || kind == GPUSONDE_CUPTI_KIND_KERNEL) && left_ns > 0) {
    const timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    ::nanosleep(&left, nullptr);
  }
  const Buffers::Thread thread = Buffers::ThisThread();
  if (early) {
    Buffers::Get().Write(MakeRecord(operation, kind, !Chance(knobs.zero)), thread);
    Buffers::Get().Flush(thread);
    return;
  }
  Worker::Get().Add({operation.end_ns + RandomUpTo(knobs.late_us * 1000), kind, operation, thread});
}

void OnApiExit(const ApiEvent& event, int32_t result) {
  const uint32_t kind = event.domain == GPUSONDE_CUPTI_DOMAIN_RUNTIME ? GPUSONDE_CUPTI_KIND_RUNTIME
                                                                      : GPUSONDE_CUPTI_KIND_DRIVER;
  if (KindEnabled(kind) && Buffers::Get().registered())
    Buffers::Get().Write(MakeApiRecord(event, result, NowNs()), Buffers::ThisThread());
}

}  // namespace simgpu::cupti

using namespace simgpu;         // NOLINT(google-build-using-namespace): the API's functions are global
using namespace simgpu::cupti;  // NOLINT(google-build-using-namespace): likewise

SIMGPU_EXPORT Result cuptiActivityEnable(uint32_t kind) {
  const Result fault = EnterCupti("cuptiActivityEnable");
  return fault != GPUSONDE_CUPTI_SUCCESS ? fault : Enable(kind);
}

SIMGPU_EXPORT Result cuptiActivityDisable(uint32_t kind) {
  const Result fault = EnterCupti("cuptiActivityDisable");
  return fault != GPUSONDE_CUPTI_SUCCESS ? fault : Disable(kind);
}

SIMGPU_EXPORT Result cuptiActivityRegisterCallbacks(gpusonde_cupti_buffer_requested* requested,
                                                    gpusonde_cupti_buffer_completed* completed) {
  const Result fault = EnterCupti("cuptiActivityRegisterCallbacks");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (requested == nullptr || completed == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  Buffers::Get().Register(requested, completed);
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiActivityFlushAll(uint32_t flag) {
  const Result fault = EnterCupti("cuptiActivityFlushAll");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  // As the real one (13.0, seen on an H200), which waits for its own thread, which waits for the driver.
  while (InResourceCallback()) pause();
  if (!Buffers::Get().registered())
    return finalizations > 0 ? GPUSONDE_CUPTI_SUCCESS : GPUSONDE_CUPTI_ERROR_INVALID_OPERATION;
  const int64_t start_ns = NowNs();
  Worker::Get().Write(start_ns, false, (flag & GPUSONDE_CUPTI_FLAG_FLUSH_FORCED) != 0);
  if (KindEnabled(GPUSONDE_CUPTI_KIND_OVERHEAD))
    Buffers::Get().Write(
        MakeOverheadRecord(GPUSONDE_CUPTI_OVERHEAD_BUFFER_FLUSH, start_ns - TheKnobs().flush_ns, NowNs()),
        Buffers::ThisThread());
  Buffers::Get().FlushAll();
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiActivityFlushPeriod(uint32_t period_ms) {
  const Result fault = EnterCupti("cuptiActivityFlushPeriod");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  // A flush period concerns full buffers only, which simgpu's worker returns anyway.
  Worker::Get().flush_period_ms = period_ms;
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, void** record) {
  const Result fault = EnterCupti("cuptiActivityGetNextRecord");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (buffer == nullptr || record == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  size_t at = 0;
  if (*record != nullptr) {
    const auto* last = static_cast<const uint8_t*>(*record);
    at = static_cast<size_t>(last - buffer) + RecordBytes(*reinterpret_cast<const uint32_t*>(last));
  }
  if (at >= valid_bytes) return GPUSONDE_CUPTI_ERROR_MAX_LIMIT_REACHED;
  const size_t bytes = RecordBytes(*reinterpret_cast<const uint32_t*>(buffer + at));
  if (bytes == 0 || bytes > valid_bytes - at) return GPUSONDE_CUPTI_ERROR_INVALID_KIND;
  *record = buffer + at;
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiActivityGetNumDroppedRecords(void* /*context*/, uint32_t /*stream_id*/,
                                                       size_t* dropped) {
  const Result fault = EnterCupti("cuptiActivityGetNumDroppedRecords");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  if (dropped == nullptr) return GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = Buffers::Get().TakeDropped();
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT Result cuptiFinalize() {
  const Result fault = EnterCupti("cuptiFinalize");
  if (fault != GPUSONDE_CUPTI_SUCCESS) return fault;
  // It frees that memory. With the real one the program's next synchronisation fails with error 719, if the
  // process has not crashed by then.
  if (InstrumentedGraphs::Get().Busy(NowNs())) std::raise(SIGSEGV);
  StopActivity();
  Worker::Get().DropPending();
  Buffers::Get().Drop();
  Names::Get().Clear();
  DropSubscriber();
  Buffers::Get().Register(nullptr, nullptr);
  ++finalizations;
  return GPUSONDE_CUPTI_SUCCESS;
}

SIMGPU_EXPORT uint32_t simgpuCuptiFinalizations() { return finalizations; }
