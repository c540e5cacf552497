// SPDX-License-Identifier: Apache-2.0
// Five threads that hardly run and wait for a second each, each in a different way, then two that compute on
// one CPU.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

using std::chrono::milliseconds;
constexpr int kRounds = 20;
constexpr milliseconds kRound(50);

[[gnu::noinline]] void SleepAlone() {
  for (int i = 0; i < kRounds; ++i) std::this_thread::sleep_for(kRound);
}

[[gnu::noinline]] void WriteNowAndThen(int pipe) {
  for (int i = 0; i < kRounds; ++i) {
    std::this_thread::sleep_for(kRound);
    if (::write(pipe, "x", 1) != 1) return;
  }
}

[[gnu::noinline]] void ReadFromPipe(int pipe) {
  char byte = 0;
  for (int i = 0; i < kRounds; ++i)
    if (::read(pipe, &byte, 1) != 1) return;
}

std::mutex mutex;

[[gnu::noinline]] void WantTheLock() { const std::lock_guard lock(mutex); }

std::mutex notified_mutex;
std::condition_variable notification;
bool notified = false;

[[gnu::noinline]] void WaitForNotification() {
  std::unique_lock lock(notified_mutex);
  notification.wait(lock, [] { return notified; });
}

void ComputeOnOneCpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  ::pthread_setaffinity_np(::pthread_self(), sizeof one, &one);
  const auto end = std::chrono::steady_clock::now() + milliseconds(1000);
  while (std::chrono::steady_clock::now() < end) continue;
}

template <class Function>
std::thread Named(const char* name, Function function) {
  return std::thread([name, function] {
    ::pthread_setname_np(::pthread_self(), name);
    function();
  });
}

}  // namespace

int main() {
  // Gives a profiler time to find this program.
  std::this_thread::sleep_for(milliseconds(500));
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return 1;
  mutex.lock();
  std::array threads = {Named("sleeper", SleepAlone), Named("writer", [&] { WriteNowAndThen(pipe[1]); }),
                        Named("reader", [&] { ReadFromPipe(pipe[0]); }), Named("locked", WantTheLock),
                        Named("idle", WaitForNotification)};
  std::this_thread::sleep_for(milliseconds(1000));
  mutex.unlock();
  {
    const std::lock_guard lock(notified_mutex);
    notified = true;
  }
  notification.notify_one();
  for (std::thread& thread : threads) thread.join();
  std::array busy = {Named("busy", ComputeOnOneCpu), Named("busy", ComputeOnOneCpu)};
  for (std::thread& thread : busy) thread.join();
  return 0;
}
