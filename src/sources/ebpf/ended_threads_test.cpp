// SPDX-License-Identifier: Apache-2.0
// Threads that are switched out between their exit event and their end, and processes that have ended.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/testing/refused.h"
#include "base/time.h"
#include "sources/ebpf/host_signals.h"
#include "sources/ebpf/testing/find_map.h"

namespace gpusonde::ebpf {
namespace {

// Holds the lock on this process's memory most of the time, for which a thread that ends has to wait.
class BusyMemory {
 public:
  BusyMemory() {
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    ::madvise(memory, kBytes, MADV_NOHUGEPAGE);
    thread_ = std::thread([this, memory] {
      while (!done_) {
        ::mprotect(memory, kBytes, PROT_READ);
        ::mprotect(memory, kBytes, PROT_READ | PROT_WRITE);
      }
      ::munmap(memory, kBytes);
    });
  }
  ~BusyMemory() {
    done_ = true;
    thread_.join();
  }
  BusyMemory(const BusyMemory&) = delete;
  BusyMemory& operator=(const BusyMemory&) = delete;

 private:
  static constexpr size_t kBytes = size_t{32} << 20;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

TEST(HostSignals, AThreadThatWaitsWhileItEndsTakesNoRoomForEver) {
  Result<HostSignals> signals = HostSignals::Create();
  SKIP_WHERE_REFUSED(signals);
  ASSERT_TRUE(signals->Follow(::getpid()).has_value());
  ::usleep(1000);  // this thread is switched out
  ASSERT_TRUE(HasThread(static_cast<uint32_t>(::gettid())));
  std::vector<int32_t> tids;
  {
    const BusyMemory busy;
    for (int i = 0; i < 300; ++i)
      std::thread([&tids] {
        tids.push_back(::gettid());
        ::usleep(100);  // it is switched out, and so known
      }).join();
  }
  const auto left = [&] {
    return std::ranges::count_if(tids, [](int32_t tid) { return HasThread(static_cast<uint32_t>(tid)); });
  };
  // A thread that was joined, and whose id is gone, may still be on its way out.
  for (int i = 0; i < 100 && left() > 0; ++i) ::usleep(100'000);
  EXPECT_EQ(left(), 0);
}

// Another process may have its id later.
TEST(HostSignals, AProcessThatHasEndedIsNotFollowed) {
  Result<HostSignals> signals = HostSignals::Create();
  SKIP_WHERE_REFUSED(signals);
  const std::optional<int> targets = FindMap("targets");
  ASSERT_TRUE(targets.has_value());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(signals->Follow(child).has_value());
  EXPECT_FALSE(HasEntry(*targets, static_cast<uint32_t>(child))) << "not reaped yet";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(signals->Follow(child).has_value());
  EXPECT_FALSE(HasEntry(*targets, static_cast<uint32_t>(child))) << "gone";
  EXPECT_TRUE(signals->Follow(::getpid()).has_value());
  EXPECT_TRUE(HasEntry(*targets, static_cast<uint32_t>(::getpid())));
}

}  // namespace
}  // namespace gpusonde::ebpf
