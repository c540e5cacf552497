// SPDX-License-Identifier: Apache-2.0
#include "inject/control.h"

#include <pthread.h>
#include <stdlib.h>

#include "inject/activity.h"
#include "inject/calls.h"
#include "inject/cupti.h"
#include "inject/governor.h"
#include "inject/libc.h"
#include "inject/probes.h"
#include "inject/shared_batch.h"
#include "inject/sink.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {
namespace {

constexpr uint64_t kSecondNs = uint64_t{1'000'000'000};
// How often the thread looks: asleep whether somebody listens, awake for records. DESIGN section 7.
constexpr uint64_t kTickNs = 250'000'000;
// How long to stay out when somebody else holds CUPTI.
constexpr uint64_t kOutNs = 60 * kSecondNs;
// Calls were chosen for so long and nothing came: another has put its own buffer callbacks in our place. A
// kernel that runs longer looks the same; then we leave for a minute for nothing.
constexpr uint64_t kSilenceNs = 10 * kSecondNs;
constexpr uint64_t kSilentCalls = 16;
// How long our thread waits for a slow reader of the socket before it drops what it has.
constexpr uint64_t kReaderPatienceNs = kSecondNs;
// A program that was to have a socket and doesn't is about to be heard by its recorder's probes: a recorder
// that follows a new process attaches to it within 0.3 s.
constexpr uint64_t kExpectedNs = kSecondNs;
// cuInit waits so long for a listener that learns to walk the program's stacks. It takes 10 to 40 ms for
// most.
constexpr uint64_t kReadyPatienceNs = kSecondNs / 2;
constexpr uint64_t kReadyLookNs = 1'000'000;
// The host's exit waits this long for our thread to be out of the way.
constexpr uint64_t kExitPatienceNs = 2 * kSecondNs;

constexpr uint32_t kKinds[] = {GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL, GPUSONDE_CUPTI_KIND_MEMCPY,
                               GPUSONDE_CUPTI_KIND_MEMCPY2,           GPUSONDE_CUPTI_KIND_MEMSET,
                               GPUSONDE_CUPTI_KIND_SYNCHRONIZATION,   GPUSONDE_CUPTI_KIND_OVERHEAD};

enum class ThreadPhase : uint32_t { kNone, kWaiting, kWorking, kDone };

Mutex g_control;  // everything below but the words that are read and written atomically
uint32_t g_started = 0;
uint32_t g_stop = 0;    // atomic: the process ends
uint32_t g_called = 0;  // atomic: how often the thread was called
uint32_t g_forked = 0;  // atomic: this is a forked child
uint32_t g_phase = 0;   // atomic: ThreadPhase

const Cupti* g_cupti = nullptr;
gpusonde_cupti_subscriber_handle g_subscriber = nullptr;
uint32_t g_sessions = 0;
uint64_t g_awake_since_ns = 0;
uint64_t g_out_until_ns = 0;
uint32_t g_exit_registrations = 0;
uint64_t g_expected_until_ns = 0;  // a recorder that isn't there yet
uint64_t g_second_ends_ns = 0;
uint64_t g_window_ends_ns = 0;
uint64_t g_cost_before_ns = 0;
// When records last came, and how much had happened by then.
uint64_t g_heard_from_cupti_ns = 0;
uint64_t g_records_then = 0;
uint64_t g_calls_then = 0;

uint64_t CostNs() { return ActivityProgress().cost_ns + GetCallProgress().cost_ns; }

bool Awake() { return g_subscriber != nullptr; }

void StayOut(const char* holder) {
  g_out_until_ns = NowNs() + kOutNs;
  TellForeign(holder, g_out_until_ns);
}

gpusonde_cupti_result Subscribe(char (&holder)[GPUSONDE_CUPTI_OLD_SUBSCRIBER_NAME_BYTES]) {
  void* user = const_cast<Cupti*>(g_cupti);
  if (g_cupti->subscribe_v2 == nullptr) return g_cupti->subscribe(&g_subscriber, OnCallback, user);
  gpusonde_cupti_subscriber_params params{.struct_size = sizeof params,
                                          .subscriber_name = "gpusonde",
                                          .old_subscriber_name = holder,
                                          .old_subscriber_size = sizeof holder};
  return g_cupti->subscribe_v2(&g_subscriber, OnCallback, user, &params);
}

void FallAsleep(uint32_t reason) {
  SetCallSession(0);
  // Where another's buffer callbacks are in place, kinds and buffers are that other's affair.
  const bool ours = reason != GPUSONDE_GPU_END_FOREIGN && reason != GPUSONDE_GPU_END_CUPTI;
  if (ours) {
    for (const uint32_t kind : kKinds) g_cupti->activity_disable(kind);
    g_cupti->flush_all(GPUSONDE_CUPTI_FLAG_FLUSH_FORCED);
  }
  if (reason != GPUSONDE_GPU_END_CUPTI) g_cupti->unsubscribe(g_subscriber);
  g_subscriber = nullptr;
  HostBatch().Flush();
  TakeRecords(true);
  EndAccount(reason);
  if (reason == GPUSONDE_GPU_END_UNHEARD) ForgetSocket();  // who listens next is another
}

void AtExit();

// CUPTI's own objects are destroyed at exit, the youngest first: some are made when a function is first
// called. So the handler is registered again once CUPTI is awake, and once more when it has delivered. It may
// run several times.
void RegisterAtExit(uint32_t registrations) {
  if (g_exit_registrations >= registrations) return;
  g_exit_registrations = registrations;
  atexit(AtExit);
}

void WakeUp() {
  g_cupti = FindCupti();
  if (g_cupti == nullptr) {
    g_out_until_ns = NowNs() + kSecondNs;  // the program may load it yet
    return;
  }
  char holder[GPUSONDE_CUPTI_OLD_SUBSCRIBER_NAME_BYTES] = {};
  const gpusonde_cupti_result subscribed = Subscribe(holder);
  if (subscribed != GPUSONDE_CUPTI_SUCCESS) {
    g_subscriber = nullptr;
    holder[sizeof holder - 1] = '\0';
    if (subscribed == GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) return StayOut(holder);
    g_out_until_ns = NowNs() + kOutNs;
    return;
  }
  BeginAccount(*g_cupti, ++g_sessions);
  // The clock first: records keep the one that was registered when their kind was enabled.
  g_cupti->register_timestamp(NowNs);
  bool listening = g_cupti->register_callbacks(RequestBuffer, CompleteBuffer) == GPUSONDE_CUPTI_SUCCESS;
  for (const uint32_t kind : kKinds) {
    const bool enabled = g_cupti->activity_enable(kind) == GPUSONDE_CUPTI_SUCCESS;
    if (kind == GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL) listening = listening && enabled;
  }
  if (!listening) {
    g_out_until_ns = NowNs() + kOutNs;
    for (const uint32_t kind : kKinds) g_cupti->activity_disable(kind);
    g_cupti->unsubscribe(g_subscriber);
    g_subscriber = nullptr;
    return EndAccount(GPUSONDE_GPU_END_CUPTI);
  }
  SetCallSession(g_sessions);
  EnableCallbacks(*g_cupti, g_subscriber);
  const uint64_t now = NowNs();
  g_awake_since_ns = now;
  g_window_ends_ns = now + Governor::kWindowNs;
  g_second_ends_ns = now + kSecondNs;
  g_heard_from_cupti_ns = now;
  g_cost_before_ns = CostNs();
  RegisterAtExit(1);
}

bool RecordsStopped(uint64_t now) {
  const uint64_t records = ActivityProgress().records;
  const uint64_t calls = GetCallProgress().calls;
  if (records != g_records_then || calls < g_calls_then + kSilentCalls) {
    if (records != g_records_then) {
      g_heard_from_cupti_ns = now;
      g_calls_then = calls;
    }
    g_records_then = records;
    return false;
  }
  return now - g_heard_from_cupti_ns > kSilenceNs;
}

// What is recorded on purpose is recorded whole; who listens always has to be cheap.
bool Governed() { return !SocketOpen() && !SocketLost(); }

bool Wanted() { return Heard() || (SocketLost() && NowNs() < g_expected_until_ns); }

void Govern(uint64_t now) {
  if (now < g_window_ends_ns) return;
  const uint64_t cost_ns = CostNs();
  const uint64_t awake_ns = now - g_awake_since_ns;
  const uint64_t sleep_ns = Governor::SleepAfter(awake_ns, cost_ns - g_cost_before_ns);
  if (sleep_ns != 0 && Governed()) {
    g_out_until_ns = now + sleep_ns;
    return FallAsleep(GPUSONDE_GPU_END_GOVERNOR);
  }
  g_awake_since_ns = now;
  g_cost_before_ns = cost_ns;
  g_window_ends_ns = now + Governor::kWindowNs;
}

void Listen() {
  g_cupti->flush_all(0);
  HostBatch().Flush();
  TakeRecords(true);
  RegisterAtExit(2);
  const uint64_t now = NowNs();
  if (now >= g_second_ends_ns) {
    g_second_ends_ns = now + kSecondNs;
    TellTotals();
    NextSecond();
  }
  if (!Wanted()) return FallAsleep(GPUSONDE_GPU_END_UNHEARD);
  if (TakeCuptiGone()) {
    g_out_until_ns = now + kOutNs;
    return FallAsleep(GPUSONDE_GPU_END_CUPTI);
  }
  if (TakeRivalSeen() || RecordsStopped(now)) {
    FallAsleep(GPUSONDE_GPU_END_FOREIGN);
    return StayOut("");
  }
  Govern(now);
}

void Tick() {
  const Locked locked(g_control);
  if (Awake())
    Listen();
  else if (Wanted() && NowNs() >= g_out_until_ns)
    WakeUp();
}

void SetPhase(ThreadPhase phase) {
  __atomic_store_n(&g_phase, static_cast<uint32_t>(phase), __ATOMIC_SEQ_CST);
}

bool Stopping() { return __atomic_load_n(&g_stop, __ATOMIC_SEQ_CST) != 0; }

void* ThreadBody(void*) {
  uint64_t next_tick_ns = NowNs() + kTickNs;
  while (!Stopping()) {
    SetPhase(ThreadPhase::kWaiting);
    const uint32_t called = __atomic_load_n(&g_called, __ATOMIC_SEQ_CST);
    const uint64_t now = NowNs();
    if (!Stopping() && now < next_tick_ns)
      WaitWhile(&g_called, called, static_cast<int64_t>(next_tick_ns - now));
    SetPhase(ThreadPhase::kWorking);
    if (Stopping()) break;
    SetPatience(NowNs() + kReaderPatienceNs);
    if (NowNs() >= next_tick_ns) {
      Tick();
      next_tick_ns = NowNs() + kTickNs;
    } else {
      TakeRecords(true);
    }
  }
  SetPhase(ThreadPhase::kDone);
  Wake(&g_phase);
  return nullptr;
}

// If our thread is stuck in CUPTI, the last records are given up rather than the host held.
void AtExit() {
  if (__atomic_load_n(&g_forked, __ATOMIC_RELAXED) != 0) return;
  __atomic_store_n(&g_stop, 1, __ATOMIC_SEQ_CST);
  CallThread();
  const uint64_t give_up_ns = NowNs() + kExitPatienceNs;
  for (;;) {
    const uint32_t phase = __atomic_load_n(&g_phase, __ATOMIC_SEQ_CST);
    if (phase == static_cast<uint32_t>(ThreadPhase::kDone) ||
        phase == static_cast<uint32_t>(ThreadPhase::kNone))
      break;
    if (NowNs() > give_up_ns) return;
    WaitWhile(&g_phase, phase, static_cast<int64_t>(kSecondNs) / 100);
  }
  SetPatience(NowNs() + kReaderPatienceNs);
  const Locked locked(g_control);
  if (Awake()) FallAsleep(GPUSONDE_GPU_END_EXIT);
}

// A listener is ready when it can walk this process's stacks: until then a graph that is
// captured would have no callers, for as long as it is launched.
void AwaitReadiness() {
  const uint64_t give_up_ns = NowNs() + kReadyPatienceNs;
  while (ProbeHeard(GPUSONDE_GPU_STATE) && !ListenerReady() && NowNs() < give_up_ns)
    WaitWhile(&g_stop, 0, kReadyLookNs);
}

void InForkedChild() {
  __atomic_store_n(&g_forked, 1, __ATOMIC_RELAXED);
  SetCallSession(0);
}

}  // namespace

void CallThread() {
  __atomic_fetch_add(&g_called, 1, __ATOMIC_SEQ_CST);
  Wake(&g_called);
}

void Start() {
  {
    const Locked locked(g_control);
    if (g_started != 0) return;
    g_started = 1;
    OpenSocket(getenv(kSocketVariable));
    g_expected_until_ns = NowNs() + kExpectedNs;
    pthread_atfork(nullptr, nullptr, InForkedChild);
    SetPhase(ThreadPhase::kWaiting);
    if (!StartThread(ThreadBody, "gpusonde")) return SetPhase(ThreadPhase::kNone);
    if (Wanted()) WakeUp();
    if (!Awake()) return;
  }
  AwaitReadiness();
}

}  // namespace gpusonde::inject
