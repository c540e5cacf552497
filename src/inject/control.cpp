// SPDX-License-Identifier: Apache-2.0
#include "inject/control.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "inject/activity.h"
#include "inject/buffer_pool.h"
#include "inject/calls.h"
#include "inject/collectives.h"
#include "inject/cost_estimate.h"
#include "inject/cupti.h"
#include "inject/detach.h"
#include "inject/devices.h"
#include "inject/governor.h"
#include "inject/launch_names.h"
#include "inject/libc.h"
#include "inject/probes.h"
#include "inject/rivals.h"
#include "inject/shared_batch.h"
#include "inject/sink.h"
#include "inject/step_marks.h"
#include "wire/gpu_event.h"

namespace gpusonde::inject {
namespace {

constexpr uint64_t kSecondNs = uint64_t{1'000'000'000};
// Period of the thread: asleep it checks for consumers, awake it flushes records.
constexpr uint64_t kTickNs = 250'000'000;
// Time until the next attempt when another tool is subscribed to CUPTI, or CUPTI has failed.
constexpr uint64_t kBackoffNs = 60 * kSecondNs;
// If calls were sampled for this long and no record arrived, another tool has replaced our buffer callbacks.
// A kernel that runs longer looks the same; then the library backs off for a minute without need.
constexpr uint64_t kSilenceNs = 10 * kSecondNs;
constexpr uint64_t kMinCallsInSilence = 16;
// How long our thread waits for a slow reader of the socket before it drops batches.
constexpr uint64_t kSendTimeoutNs = kSecondNs;
// How long the recorder of a program that has lost its socket is expected to attach to the probes instead: it
// attaches to a new process within 0.3 s, but later where many start on a busy machine. Within a second it
// missed three of eight ranks there. Until then records are kept; only a program that ends before waits.
constexpr uint64_t kExpectedNs = 3 * kSecondNs;
// The kernel increments a probe's semaphore before the consumer's BPF program is in place: by up to 12 ms,
// where it was measured.
constexpr uint64_t kAttachingNs = kSecondNs / 5;
// How long cuInit waits for a consumer to prepare the unwind tables of the program. Most take 10 to 40 ms.
constexpr uint64_t kReadyTimeoutNs = kSecondNs / 2;
constexpr uint64_t kReadyPollNs = 1'000'000;
// How long a program may make no CUDA call until we unsubscribe without finalizing CUPTI.
constexpr uint64_t kFinalizeTimeoutNs = kSecondNs;
// How long we wait for the program's thread that finalizes CUPTI. It takes milliseconds, unless the driver
// hangs.
constexpr uint64_t kFinalizingTimeoutNs = kSecondNs;
// How long another tool's subscription waits for us to leave CUPTI.
constexpr uint64_t kYieldTimeoutNs = 2 * kSecondNs;
// How long the host's exit waits for our thread to finish what it does, and then to end the session, which
// includes kSendTimeoutNs.
constexpr uint64_t kExitTimeoutNs = 2 * kSecondNs;
constexpr uint64_t kEndTimeoutNs = 5 * kSecondNs;

constexpr uint32_t kKinds[] = {GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL, GPUSONDE_CUPTI_KIND_MEMCPY,
                               GPUSONDE_CUPTI_KIND_MEMCPY2,           GPUSONDE_CUPTI_KIND_MEMSET,
                               GPUSONDE_CUPTI_KIND_SYNCHRONIZATION,   GPUSONDE_CUPTI_KIND_OVERHEAD};

enum class ThreadPhase : uint32_t { kNone, kWaiting, kWorking, kEnding, kDone };

// From the library's start to the end of the process. All are atomic, and read and written without a lock,
// but for `pid`, which is written before it is first read.
struct Process {
  uint32_t started;
  uint32_t stops;          // the process ends
  uint32_t wakes;          // number of WakeThread calls
  uint32_t forked;         // this is a forked child
  int32_t pid;             // in which the library has started
  uint32_t phase;          // ThreadPhase
  uint32_t yields;         // another tool subscribes to CUPTI and could not wait for us
  uint32_t keeps_records;  // for the recorder of a lost socket, in CUPTI's buffers unless these are many
};

// What is known of CUPTI over all sessions.
struct Subscription {
  const Cupti* cupti;
  gpusonde_cupti_subscriber_handle subscriber;  // null while asleep
  // The subscription that is left until CUPTI is finalized, or kFinalizeTimeoutNs have passed.
  gpusonde_cupti_subscriber_handle left;
  uint32_t sessions;
  uint32_t exit_registrations;
  uint64_t retry_at_ns;       // no attempt to subscribe before
  uint64_t asleep_since_ns;   // when it was last ended
  uint64_t expects_until_ns;  // until when a recorder is expected to attach
};

// From waking up to falling asleep.
struct Session {
  uint64_t woke_ns;
  uint64_t second_ends_ns;
  // When records last arrived, and the numbers of records and sampled calls at that time.
  uint64_t last_record_ns;
  uint64_t records_then;
  uint64_t calls_then;
};

// A window of the governor's, while awake.
struct Window {
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t records_before;
  uint64_t cost_before_ns;
};

// What the governor makes of windows and of the sleeps between them.
struct Pace {
  Governor governor;
  CostEstimate estimate;
  CostEstimate::Sleep sleep;  // the last one, until its window after has ended; else all 0
  uint64_t awake_ns = 0;      // the window before it
  uint64_t sleep_ns = 0;      // its length as decided, with this budget
  double budget = 0;
  uint64_t window_ns = Governor::kWindowNs;  // length of the next one
  uint64_t transition_ns = 0;                // what CUPTI took to begin and to end the last sleep
};

constinit Process g_process{};

Mutex g_control;  // guards the rest
constinit Subscription g_subscription{};
constinit Session g_session{};
constinit Window g_window{};
constinit Pace g_pace{};

uint64_t CostNs() { return ActivityProgress().cost_ns + GetCallProgress().cost_ns; }

bool Awake() { return g_subscription.subscriber != nullptr; }

void BackOff(const char* holder) {
  g_pace.sleep = {};  // the program's pace shows the other tool's cost, too
  g_subscription.retry_at_ns = NowNs() + kBackoffNs;
  SendForeignUser(holder, g_subscription.retry_at_ns);
}

gpusonde_cupti_result Subscribe(char (&holder)[GPUSONDE_CUPTI_OLD_SUBSCRIBER_NAME_BYTES]) {
  void* user = const_cast<Cupti*>(g_subscription.cupti);
  if (g_subscription.cupti->subscribe_v2 == nullptr)
    return g_subscription.cupti->subscribe(&g_subscription.subscriber, OnCallback, user);
  gpusonde_cupti_subscriber_params params{.struct_size = sizeof params,
                                          .subscriber_name = "gpusonde",
                                          .old_subscriber_name = holder,
                                          .old_subscriber_size = sizeof holder};
  return g_subscription.cupti->subscribe_v2(&g_subscription.subscriber, OnCallback, user, &params);
}

// What becomes of CUPTI when the library falls asleep.
enum class Leaving : uint8_t {
  kFinalize,     // it is removed from the process
  kUnsubscribe,  // another tool is about to use it, or the process ends
  kForeign,  // another tool has registered its buffer callbacks: enabled kinds and buffers are that tool's
  kBroken,   // it has failed, and finalized itself
};

bool KeepsRecords() { return __atomic_load_n(&g_process.keeps_records, __ATOMIC_RELAXED) != 0; }
void KeepRecords(bool keep) { __atomic_store_n(&g_process.keeps_records, keep ? 1 : 0, __ATOMIC_RELAXED); }

// Ends a subscription that is left because CUPTI could not be finalized. False if that is still being done at
// the deadline: CUPTI must not be called then.
bool WithdrawLeft(uint64_t deadline_ns) {
  const Withdrawal withdrawal = WithdrawFinalize(deadline_ns);
  if (withdrawal == Withdrawal::kWithdrawn) g_subscription.cupti->unsubscribe(g_subscription.left);
  return withdrawal != Withdrawal::kRunning;
}

void FallAsleep(uint32_t reason, Leaving how) {
  g_pace.sleep = {};
  KeepRecords(false);
  SetCallSession(0);
  if (how == Leaving::kFinalize || how == Leaving::kUnsubscribe) {
    for (const uint32_t kind : kKinds) g_subscription.cupti->activity_disable(kind);
    FlushBuffers(*g_subscription.cupti, GPUSONDE_CUPTI_FLAG_FLUSH_FORCED);
    g_subscription.cupti->register_timestamp(RealTimeNs);
  }
  const bool finalize = how == Leaving::kFinalize && CanFinalize(*g_subscription.cupti);
  if (!finalize) {
    StopRedirecting();
    if (how != Leaving::kBroken) g_subscription.cupti->unsubscribe(g_subscription.subscriber);
  }
  g_subscription.left = g_subscription.subscriber;
  g_subscription.subscriber = nullptr;
  g_subscription.asleep_since_ns = NowNs();
  HostBatch().Flush();
  DrainBuffers(true);
  EndSession(reason);
  if (reason == GPUSONDE_GPU_END_NO_CONSUMER) ForgetSocket();  // a later consumer is a different one
  if (finalize) RequestFinalize(*g_subscription.cupti);        // last: it ends all other use of CUPTI
}

// Another tool of this process, in the library `holder`, is about to subscribe to CUPTI, on this thread,
// which is the host's. If our thread hangs in CUPTI, or the program's in cuptiFinalize, the other tool does
// not wait for longer than kYieldTimeoutNs: its subscription fails then, as if CUPTI had served us alone, and
// our thread leaves CUPTI as soon as it can.
void YieldTo(const char* holder) {
  if (IsForkedChild()) return;
  const uint64_t deadline_ns = NowNs() + kYieldTimeoutNs;
  const HostWaits waits;
  if (const LockedUntil locked(g_control, deadline_ns); locked) {
    (void)WithdrawLeft(deadline_ns);
    if (Awake()) FallAsleep(GPUSONDE_GPU_END_FOREIGN, Leaving::kUnsubscribe);
    BackOff(holder);
  } else {
    __atomic_store_n(&g_process.yields, 1, __ATOMIC_RELAXED);
  }
}

// Does what YieldTo could not wait for. The other tool's name is not known any more.
bool YieldLate() {
  if (__atomic_exchange_n(&g_process.yields, 0, __ATOMIC_RELAXED) == 0) return false;
  (void)TestAndClearRivalSeen();
  if (Awake()) FallAsleep(GPUSONDE_GPU_END_FOREIGN, Leaving::kUnsubscribe);
  BackOff("");
  return true;
}

void AtExit();

// CUPTI's static objects are destroyed at exit in reverse order of construction, and some are constructed
// when a function is first called. Our handler has to run before their destructors: it is registered again
// once CUPTI is enabled, and once more when it has delivered. So it may run several times.
void RegisterAtExit(uint32_t registrations) {
  if (g_subscription.exit_registrations >= registrations) return;
  g_subscription.exit_registrations = registrations;
  atexit(AtExit);
}

void BeginWindow(uint64_t now) {
  g_window.begin_ns = now;
  g_window.end_ns = now + g_pace.window_ns;
  g_window.records_before = ActivityProgress().records;
  BeginMarks(now, g_pace.window_ns);
}

void WakeUp() {
  g_subscription.cupti = FindCupti();
  if (g_subscription.cupti == nullptr) {
    g_subscription.retry_at_ns = NowNs() + kSecondNs;  // the program may load it yet
    return;
  }
  // Not later: a library may subscribe while it is loaded, and wait for us with the loader's lock.
  FindDriver();
  const uint64_t begin_ns = NowNs();
  if (!WithdrawLeft(begin_ns + kFinalizingTimeoutNs)) {
    g_subscription.retry_at_ns = NowNs() + kSecondNs;
    return;
  }
  char holder[GPUSONDE_CUPTI_OLD_SUBSCRIBER_NAME_BYTES] = {};
  const gpusonde_cupti_result subscribed = Subscribe(holder);
  if (subscribed != GPUSONDE_CUPTI_SUCCESS) {
    g_pace.sleep = {};
    g_subscription.subscriber = nullptr;
    holder[sizeof holder - 1] = '\0';
    if (subscribed == GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) return BackOff(holder);
    g_subscription.retry_at_ns = NowNs() + kBackoffNs;
    return;
  }
  const uint64_t finalize_ns = TakeFinalizeNs();
  // The same CUPTI as before, and nobody saw which modules were unloaded meanwhile.
  if (g_subscription.sessions != 0 && finalize_ns == 0) NoteUnload();
  EnableGraphLaunches(*g_subscription.cupti,
                      g_subscription.subscriber);  // none may be missed while kernels are recorded
  BeginSession(*g_subscription.cupti, ++g_subscription.sessions, finalize_ns != 0);
  // The clock comes first: a kind keeps the timestamp callback that was registered when it was enabled.
  g_subscription.cupti->register_timestamp(NowNs);
  bool active =
      g_subscription.cupti->register_callbacks(RequestBuffer, CompleteBuffer) == GPUSONDE_CUPTI_SUCCESS;
  for (const uint32_t kind : kKinds) {
    const bool enabled = g_subscription.cupti->activity_enable(kind) == GPUSONDE_CUPTI_SUCCESS;
    if (kind == GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL) active = active && enabled;
  }
  if (!active) {
    g_subscription.retry_at_ns = NowNs() + kBackoffNs;
    for (const uint32_t kind : kKinds) g_subscription.cupti->activity_disable(kind);
    g_subscription.cupti->unsubscribe(g_subscription.subscriber);
    g_subscription.subscriber = nullptr;
    g_pace.sleep = {};
    return EndSession(GPUSONDE_GPU_END_CUPTI);
  }
  KeepRecords(!HasConsumers());
  SetCallSession(g_subscription.sessions);
  EnableCallbacks(*g_subscription.cupti, g_subscription.subscriber);
  RedirectRivals(*g_subscription.cupti, YieldTo);
  const uint64_t now = NowNs();
  g_session.woke_ns = now;
  if (g_pace.sleep.from_ns != 0) {
    g_pace.sleep.until_ns = now;
    g_pace.transition_ns += now - begin_ns + finalize_ns;
  } else {
    g_pace.transition_ns = 0;
    g_window.cost_before_ns = CostNs();
  }
  BeginWindow(now);
  g_session.second_ends_ns = now + kSecondNs;
  g_session.last_record_ns = now;
  RegisterAtExit(1);
}

bool RecordsStopped(uint64_t now) {
  const uint64_t records = ActivityProgress().records;
  const uint64_t calls = GetCallProgress().calls;
  if (records != g_session.records_then || calls < g_session.calls_then + kMinCallsInSilence) {
    if (records != g_session.records_then) {
      g_session.last_record_ns = now;
      g_session.calls_then = calls;
    }
    g_session.records_then = records;
    return false;
  }
  return now - g_session.last_record_ns > kSilenceNs;
}

// The governor limits continuous profiling only; a program that was started under `gpusonde record` is
// recorded completely.
bool Governed() { return !SocketOpen() && !SocketLost(); }

bool RecorderExpected() { return SocketLost() && NowNs() < g_subscription.expects_until_ns; }
bool Wanted() { return HasConsumers() || RecorderExpected(); }

double Budget() {
  return BudgetPpm(static_cast<uint32_t>(Governor::kDefaultBudget * GPUSONDE_GPU_PPM)) / GPUSONDE_GPU_PPM;
}

// What the window that ends now and the budget make of the next.
uint64_t SleepAfterWindow(uint64_t now, uint64_t measured_ns, const StepMarks::Window& marks) {
  if (g_pace.sleep.until_ns != 0) {
    g_pace.sleep.after[0] = marks.first;
    g_pace.sleep.after[1] = marks.middle;
    g_pace.estimate.Add(g_pace.sleep);
  }
  g_pace.budget = Budget();
  g_pace.awake_ns = now - g_window.begin_ns;
  const CostEstimate::Interval estimate = g_pace.estimate.Estimate();
  const Governor::Decision decision =
      g_pace.governor.Decide({.awake_ns = g_pace.awake_ns,
                              .measured_ns = measured_ns,
                              .transition_ns = g_pace.transition_ns,
                              .records = ActivityProgress().records - g_window.records_before,
                              .marks = marks.runs,
                              .since_wake_ns = now - g_session.woke_ns},
                             estimate, g_pace.budget);
  g_pace.window_ns = decision.next_window_ns;
  SendOverhead(g_pace.budget, g_pace.governor.use(), estimate);
  return decision.sleep_ns;
}

// When the sleep ends that was decided with another budget: a higher one pays for the window before sooner.
uint64_t SleepsUntilNs() {
  const double budget = Budget();
  if (g_pace.sleep.from_ns == 0 || budget <= g_pace.budget) return g_subscription.retry_at_ns;
  const uint64_t whole_ns = g_pace.awake_ns + g_pace.sleep_ns;
  const auto due_ns = static_cast<uint64_t>(static_cast<double>(whole_ns) * g_pace.budget / budget);
  const uint64_t saved_ns = due_ns > g_pace.awake_ns ? whole_ns - due_ns : g_pace.sleep_ns;
  return g_subscription.retry_at_ns - saved_ns;
}

void Govern(uint64_t now) {
  if (now < g_window.end_ns) return;
  const StepMarks::Window marks = EndMarks();
  const uint64_t cost_ns = CostNs();
  const uint64_t measured_ns = cost_ns - g_window.cost_before_ns;
  g_window.cost_before_ns = cost_ns;
  const uint64_t sleep_ns = Governed() ? SleepAfterWindow(now, measured_ns, marks) : 0;
  g_pace.sleep = {};
  if (sleep_ns == 0) return BeginWindow(now);
  g_pace.sleep_ns = sleep_ns;
  g_subscription.retry_at_ns = now + sleep_ns;
  FallAsleep(GPUSONDE_GPU_END_GOVERNOR, Leaving::kFinalize);
  g_pace.sleep.before[0] = marks.middle;
  g_pace.sleep.before[1] = marks.last;
  g_pace.sleep.from_ns = g_subscription.asleep_since_ns;
  g_pace.transition_ns = g_subscription.asleep_since_ns - now;
}

void Poll() {
  RedirectRivals(*g_subscription.cupti, YieldTo);
  RegisterAtExit(2);
  // Its probes are attached one after the other, and that for snapshots last.
  if (KeepsRecords() && RecorderExpected() && !ProbeAttached(GPUSONDE_GPU_SNAPSHOT)) return;
  KeepRecords(false);
  FlushBuffers(*g_subscription.cupti, 0);
  HostBatch().Flush();
  DrainBuffers(true);
  const uint64_t now = NowNs();
  if (now >= g_session.second_ends_ns) {
    g_session.second_ends_ns = now + kSecondNs;
    SendTotals();
    NextSecond();
  }
  if (!Wanted()) return FallAsleep(GPUSONDE_GPU_END_NO_CONSUMER, Leaving::kFinalize);
  if (TestAndClearFatalError()) {
    g_subscription.retry_at_ns = now + kBackoffNs;
    return FallAsleep(GPUSONDE_GPU_END_CUPTI, Leaving::kBroken);
  }
  if (YieldLate()) return;
  if (TestAndClearRivalSeen() || RecordsStopped(now)) {
    FallAsleep(GPUSONDE_GPU_END_FOREIGN, Leaving::kForeign);
    return BackOff("");
  }
  Govern(now);
}

void StayAsleep() {
  if (FinalizePending() && NowNs() - g_subscription.asleep_since_ns > kFinalizeTimeoutNs)
    (void)WithdrawLeft(0);
  if (!FinalizePending()) StopRedirecting();
}

void Tick() {
  PollCollectives(HasConsumers());
  const Locked locked(g_control);
  if (YieldLate()) return;
  if (Awake())
    Poll();
  else if (Wanted() && NowNs() >= SleepsUntilNs())
    WakeUp();
  else
    StayAsleep();
}

void SetPhase(ThreadPhase phase) {
  __atomic_store_n(&g_process.phase, static_cast<uint32_t>(phase), __ATOMIC_SEQ_CST);
}

bool Stopping() { return __atomic_load_n(&g_process.stops, __ATOMIC_SEQ_CST) != 0; }

void End() {
  SetPhase(ThreadPhase::kEnding);
  Wake(&g_process.phase);
  SetSendDeadline(NowNs() + kSendTimeoutNs);
  const Locked locked(g_control);
  if (!WithdrawLeft(NowNs() + kFinalizingTimeoutNs)) return;
  if (Awake()) FallAsleep(GPUSONDE_GPU_END_EXIT, Leaving::kUnsubscribe);
}

void* ThreadBody(void*) {
  uint64_t next_tick_ns = NowNs() + kTickNs;
  while (!Stopping()) {
    SetPhase(ThreadPhase::kWaiting);
    const uint32_t wakes = __atomic_load_n(&g_process.wakes, __ATOMIC_SEQ_CST);
    const uint64_t now = NowNs();
    if (!Stopping() && now < next_tick_ns)
      WaitWhile(&g_process.wakes, wakes, static_cast<int64_t>(next_tick_ns - now));
    SetPhase(ThreadPhase::kWorking);
    if (Stopping()) break;
    SetSendDeadline(NowNs() + kSendTimeoutNs);
    if (NowNs() >= next_tick_ns) {
      Tick();
      next_tick_ns = NowNs() + kTickNs;
    } else {
      DrainBuffers(true);
    }
  }
  End();
  SetPhase(ThreadPhase::kDone);
  Wake(&g_process.phase);
  return nullptr;
}

// What is kept for it is lost if a rank ends before it has attached.
void AwaitRecorder() {
  if (!KeepsRecords()) return;
  for (uint64_t attached_ns = 0; RecorderExpected() && RecorderRuns();) {
    const uint64_t now = NowNs();
    if (attached_ns == 0 && ProbeAttached(GPUSONDE_GPU_SNAPSHOT)) attached_ns = now;
    if (attached_ns != 0 && now - attached_ns > kAttachingNs) return;
    WaitWhile(&g_process.stops, 0, kReadyPollNs);
  }
}

// Our thread ends the session, and no lock is taken here: a handler of the program's signals may have called
// exit() while the thread that it interrupted held one of ours, in a callback of CUPTI or in YieldTo. Then
// our thread waits for it in vain, as it does when it hangs in CUPTI: its last records are dropped so that
// the host can exit.
void AtExit() {
  // By the pid, as a child that was forked by the system call alone has no handlers of forks run.
  if (getpid() != g_process.pid) return;
  AwaitRecorder();
  if (__atomic_exchange_n(&g_process.stops, 1, __ATOMIC_SEQ_CST) != 0)
    return;  // not the first run: don't wait again
  WakeThread();
  uint64_t give_up_ns = NowNs() + kExitTimeoutNs;
  for (bool ending = false;;) {
    const uint32_t phase = __atomic_load_n(&g_process.phase, __ATOMIC_SEQ_CST);
    if (phase == static_cast<uint32_t>(ThreadPhase::kDone) ||
        phase == static_cast<uint32_t>(ThreadPhase::kNone))
      return;
    if (!ending && phase == static_cast<uint32_t>(ThreadPhase::kEnding)) {
      ending = true;
      give_up_ns = NowNs() + kEndTimeoutNs;
    }
    if (NowNs() > give_up_ns) return;
    WaitWhile(&g_process.phase, phase, static_cast<int64_t>(kSecondNs) / 100);
  }
}

// Waits until the consumer can unwind this process's stacks. The nodes of a graph that is captured before
// that would have no call stacks, for as long as the graph is launched.
void AwaitReadiness() {
  const uint64_t give_up_ns = NowNs() + kReadyTimeoutNs;
  while (ProbeAttached(GPUSONDE_GPU_STATE) && !ConsumerReady() && NowNs() < give_up_ns)
    WaitWhile(&g_process.stops, 0, kReadyPollNs);
}

void OnForkInChild() {
  __atomic_store_n(&g_process.forked, 1, __ATOMIC_RELAXED);
  SetCallSession(0);
}

}  // namespace

bool IsForkedChild() { return __atomic_load_n(&g_process.forked, __ATOMIC_RELAXED) != 0; }

void WakeThread() {
  __atomic_fetch_add(&g_process.wakes, 1, __ATOMIC_SEQ_CST);
  Wake(&g_process.wakes);
}

void Start() {
  if (IsForkedChild() || __atomic_exchange_n(&g_process.started, 1, __ATOMIC_SEQ_CST) != 0) return;
  {
    const Locked locked(g_control);
    g_process.pid = getpid();
    OpenSocket(getenv(kSocketVariable));
    g_subscription.expects_until_ns = NowNs() + kExpectedNs;
    pthread_atfork(nullptr, nullptr, OnForkInChild);
    SetPhase(ThreadPhase::kWaiting);
    if (!StartThread(ThreadBody, "gpusonde")) return SetPhase(ThreadPhase::kNone);
    if (Wanted()) WakeUp();
    if (!Awake()) return;
  }
  AwaitReadiness();
}

}  // namespace gpusonde::inject
