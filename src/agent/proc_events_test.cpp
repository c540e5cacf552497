// SPDX-License-Identifier: Apache-2.0
#include "agent/proc_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "agent/child.h"

namespace gpusonde::agent {
namespace {

// Starts programs that would run for a minute, and kills them at the end.
class ProcEventsTest : public testing::Test {
 protected:
  void Start(const std::vector<std::string>& command) {
    child_ = Child::Prepare(command).value();
    watched_.Follow(child_->pid());
    ASSERT_TRUE(child_->Start().has_value());
  }
  void TearDown() override {
    for (const perf::SidebandEvent& event : events_)
      if (const auto* fork = std::get_if<perf::ForkEvent>(&event.what);
          fork != nullptr && fork->pid == fork->tid)
        ::kill(fork->pid, SIGKILL);
    ::kill(child_->pid(), SIGKILL);
    while (!child_->TryWait().has_value()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  void Drain() {
    ASSERT_TRUE(watched_
                    .Drain(sources::VisitOnly(
                        [this](perf::SidebandEvent&& event) { events_.push_back(std::move(event)); }))
                    .has_value());
  }

  // The first event of this kind for which is_it holds; fails after half a minute.
  template <class Event>
  std::optional<Event> See(const std::function<bool(const Event&)>& is_it) {
    for (int i = 0; i < 3000; ++i) {
      for (const perf::SidebandEvent& event : events_)
        if (const auto* what = std::get_if<Event>(&event.what); what != nullptr && is_it(*what)) return *what;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      Drain();
    }
    return std::nullopt;
  }

  std::optional<Child> child_;
  ProcEvents watched_;
  std::vector<perf::SidebandEvent> events_;
};

TEST_F(ProcEventsTest, AProgramThatBecomesAnotherAndEnds) {
  Start({"sh", "-c", "exec sleep 60"});
  EXPECT_TRUE(See<perf::CommEvent>([&](const perf::CommEvent& comm) {
    return comm.exec && comm.name == "sleep" && comm.pid == child_->pid();
  }));
  ::kill(child_->pid(), SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child_->pid()), &ended, WEXITED | WNOWAIT), 0);
  const size_t before = events_.size();
  Drain();
  EXPECT_EQ(events_.size(), before) << "a zombie has not become another program";
  EXPECT_TRUE(child_->TryWait().has_value());
  EXPECT_TRUE(See<perf::ExitEvent>(
      [&](const perf::ExitEvent& exit) { return exit.pid == child_->pid() && exit.tid == child_->pid(); }));
  const size_t all = events_.size();
  Drain();
  EXPECT_EQ(events_.size(), all) << "no process is left to poll";
}

TEST_F(ProcEventsTest, ChildrenOfChildrenAreSeen) {
  Start({"sh", "-c", "sh -c 'sleep 60; :' ; :"});
  const auto child = See<perf::ForkEvent>([&](const auto& fork) { return fork.parent_pid == child_->pid(); });
  ASSERT_TRUE(child.has_value());
  EXPECT_TRUE(See<perf::ForkEvent>([&](const auto& fork) { return fork.parent_pid == child->pid; }));
}

TEST_F(ProcEventsTest, ThreadsComeWithTheirNames) {
  Start({"python3", "-c",
         "import threading, time\n"
         "def work():\n"
         "  open('/proc/self/task/%d/comm' % threading.get_native_id(), 'w').write('loader')\n"
         "  time.sleep(60)\n"
         "threading.Thread(target=work).start()"});
  EXPECT_TRUE(See<perf::CommEvent>([&](const perf::CommEvent& comm) {
    return comm.name == "loader" && comm.pid == child_->pid() && comm.tid != comm.pid && !comm.exec;
  }));
}

}  // namespace
}  // namespace gpusonde::agent
