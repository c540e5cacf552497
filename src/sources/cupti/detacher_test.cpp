// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/detacher.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <semaphore>
#include <thread>
#include <vector>

#include "base/testing/refuse_call.h"

namespace gpusonde::cupti {
namespace {

TEST(Detacher, DetachesAllInOrderBeforeItEnds) {
  std::vector<int> detached;
  {
    Detacher detacher;
    std::vector<Detacher::Detach> probes;
    for (int i = 0; i < 5; ++i) probes.emplace_back([&detached, i] { detached.push_back(i); });
    detacher.Add(std::move(probes));
    detacher.Add({[&detached] { detached.push_back(5); }});
  }
  EXPECT_EQ(detached, (std::vector{0, 1, 2, 3, 4, 5}));
}

TEST(Detacher, WhoAddsDoesNotWaitAndWhoPausesWaitsForOneAtMost) {
  bool waited_for_one = false;
  // On a busy machine this thread may ask for the pause when all is detached.
  for (int turn = 0; turn < 50 && !waited_for_one; ++turn) {
    std::atomic<int> begun = 0, ended = 0;
    std::binary_semaphore first_has_begun(0), go_on(0);
    Detacher detacher;
    detacher.Add({[&] {
                    ++begun;
                    first_has_begun.release();
                    go_on.acquire();
                    ++ended;
                  },
                  [&] {
                    ++begun;
                    ++ended;
                  }});
    first_has_begun.acquire();
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      go_on.release();
    });
    {
      const Detacher::Pause pause(detacher);
      const int before = begun;
      EXPECT_EQ(ended, before) << "nothing is being detached";
      waited_for_one = before == 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(begun, before);
    }
    later.join();
    while (ended < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(waited_for_one);
}

// As in a container that has as many threads as it may have. An exception would end the whole agent.
TEST(Detacher, WithoutAThreadDetachesAtItsEnd) {
  enum { kDone, kNoFilter, kAtOnce, kNotDetached };
  const pid_t child = ::fork();
  if (child == 0) {
    for (const uint32_t number : {SYS_clone, SYS_clone3})
      if (!RefuseCall({.number = number, .error = EAGAIN})) ::_exit(kNoFilter);
    int detached = 0;
    {
      Detacher detacher;
      for (int i = 0; i < 2; ++i) detacher.Add({[&detached] { ++detached; }});
      const Detacher::Pause pause(detacher);
      if (detached != 0) ::_exit(kAtOnce);
    }
    ::_exit(detached == 2 ? kDone : kNotDetached);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this kernel has no seccomp filters";
  EXPECT_EQ(WEXITSTATUS(status), kDone);
}

TEST(Detacher, WithNothingToDetachEndsAtOnce) {
  Detacher detacher;
  detacher.Add({});
  const Detacher::Pause pause(detacher);
}

}  // namespace
}  // namespace gpusonde::cupti
