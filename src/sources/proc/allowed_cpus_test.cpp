// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/allowed_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <semaphore>
#include <thread>

namespace gpusonde::proc {
namespace {

cpu_set_t MaskOfThisThread() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  return mask;
}

// Restricts this thread to one of its CPUs while it exists.
class OneCpu {
 public:
  OneCpu() : before_(MaskOfThisThread()) {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneCpu() { EXPECT_EQ(::sched_setaffinity(0, sizeof before_, &before_), 0); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_;
};

TEST(AllowedCpusTest, AreThoseOfAllThreads) {
  const cpu_set_t mask = MaskOfThisThread();
  const int all = CPU_COUNT(&mask);
  EXPECT_EQ(CountAllowedCpus(::getpid()), all);
  std::binary_semaphore end(0);
  std::thread unrestricted([&end] { end.acquire(); });
  {
    const OneCpu one;
    EXPECT_EQ(CountAllowedCpus(::getpid()), all) << "another thread may run on all of them";
  }
  end.release();
  unrestricted.join();
}

TEST(AllowedCpusTest, ShrinkWithTheAffinityOfAProcess) {
  const OneCpu one;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_EQ(CountAllowedCpus(child), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(AllowedCpusTest, OfNoProcessAreUnknown) {
  EXPECT_EQ(CountAllowedCpus(std::numeric_limits<int32_t>::max()), std::nullopt);
}

}  // namespace
}  // namespace gpusonde::proc
