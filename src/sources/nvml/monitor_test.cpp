// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>

#include "base/testing/refuse_call.h"
#include "sources/nvml/hub.h"
#include "sources/nvml/testing/fake_nvml.h"
#include "sources/nvml/xid_watcher.h"

namespace gpusonde::nvml {
namespace {

using model::Metric;
using testing::Contains;
using testing::HasSubstr;

class MonitorTest : public testing::Test {
 protected:
  void SetUp() override { fake_.Reset(); }

  static Monitor StartMonitor() {
    auto monitor = Monitor::Start({.frequency_hz = 10,
                                   .open = [] { return Result<Library>(Library(FakeNvml::functions())); },
                                   .retry_ns = 50 * kNanosPerMilli,
                                   .longest_retry_ns = 100 * kNanosPerMilli});
    EXPECT_TRUE(monitor.has_value()) << monitor.error().message;
    return std::move(monitor).value();
  }

  void Drain(Monitor& monitor) {
    const Status drained =
        monitor.Drain(sources::VisitOnly([this](const Notice& notice) { texts_.push_back(notice.text); },
                                         [this](const Reading& reading) { readings_.push_back(reading); }));
    EXPECT_TRUE(drained.has_value());
    drops_.Merge(monitor.DrainDrops());
  }
  // Drains until `enough`; false after half a minute.
  bool WaitFor(Monitor& monitor, const std::function<bool()>& enough) {
    for (int i = 0; i < 3000; ++i) {
      Drain(monitor);
      if (enough()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  bool Reported(const std::string& part) const {
    return std::ranges::any_of(texts_, [&](const std::string& text) { return text.contains(part); });
  }
  size_t CountOf(Metric metric, size_t device = 0) const {
    return static_cast<size_t>(std::ranges::count_if(readings_, [&](const Reading& reading) {
      return reading.metric == metric && reading.device == device;
    }));
  }

  FakeNvml& fake_ = FakeNvml::Get();
  std::vector<std::string> texts_;
  std::vector<Reading> readings_;
  model::DropCounts drops_;
};

TEST_F(MonitorTest, ReadsEveryDeviceRoundByRound) {
  fake_.SetGpus({{.uuid = "GPU-a"}, {.uuid = "GPU-b"}});
  Monitor monitor = StartMonitor();
  EXPECT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuPower, 1) >= 3; }));
  const std::vector<Device> devices = monitor.devices();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[1].uuid, "GPU-b");
  EXPECT_EQ(devices[1].index, 1);
  EXPECT_EQ(devices[1].memory_bytes, 80'000'000'000);
  EXPECT_GE(CountOf(Metric::kGpuPower, 0), 3U);
  monitor.Stop();
  EXPECT_EQ(fake_.calls("shutdown"), fake_.calls("init"));
}

TEST_F(MonitorTest, AnXidIsAnEventWithItsCode) {
  fake_.SetGpus({{.uuid = "GPU-a"}, {.uuid = "GPU-b"}});
  Monitor monitor = StartMonitor();
  ASSERT_TRUE(WaitFor(monitor, [&] { return fake_.calls("register_events") == 2; }));
  fake_.Raise({FakeNvml::HandleOf(1), GPUSONDE_NVML_EVENT_XID, 79, UINT32_MAX, UINT32_MAX});
  fake_.Raise({FakeNvml::HandleOf(1), GPUSONDE_NVML_EVENT_XID, 48, UINT32_MAX, UINT32_MAX});
  EXPECT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuXid, 1) == 2; }));
  std::vector<double> codes;
  for (const Reading& reading : readings_)
    if (reading.metric == Metric::kGpuXid) codes.push_back(reading.value);
  EXPECT_THAT(codes, testing::ElementsAre(79, 48));
}

TEST_F(MonitorTest, XidsOfMigInstancesAreThoseOfTheirDevice) {
  FakeNvml::Gpu instance{.uuid = "MIG-1", .name = "Fake MIG 3g.40gb"};
  instance.parent = 0;
  fake_.SetGpus({{.uuid = "GPU-a"}, instance});
  Monitor monitor = StartMonitor();
  ASSERT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuMemoryUsed, 1) > 0; }));
  EXPECT_EQ(fake_.calls("register_events"), 1);
  fake_.Raise({FakeNvml::HandleOf(0), GPUSONDE_NVML_EVENT_XID, 94, 3, 0});
  EXPECT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuXid, 0) == 1; }));
  monitor.Stop();
  EXPECT_EQ(fake_.live_samples(), 0) << "freed before nvmlShutdown";
}

TEST_F(MonitorTest, ReportsAnXidWhileAReadingIsStuck) {
  fake_.Stick("power");
  Monitor monitor = StartMonitor();
  ASSERT_TRUE(WaitFor(monitor, [&] { return fake_.calls("power") == 1; }));
  fake_.Raise({FakeNvml::HandleOf(0), GPUSONDE_NVML_EVENT_XID, 79, UINT32_MAX, UINT32_MAX});
  EXPECT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuXid) == 1; }));
  fake_.FreeAll();
}

TEST_F(MonitorTest, CountsInvalidEvents) {
  Monitor monitor = StartMonitor();
  ASSERT_TRUE(WaitFor(monitor, [&] { return fake_.calls("register_events") == 1; }));
  fake_.Raise({FakeNvml::HandleOf(5), GPUSONDE_NVML_EVENT_XID, 79, 0, 0});
  fake_.Raise({FakeNvml::HandleOf(0), GPUSONDE_NVML_EVENT_CLOCK, 79, 0, 0});
  fake_.Raise({FakeNvml::HandleOf(0), GPUSONDE_NVML_EVENT_XID, UINT64_MAX, 0, 0});
  EXPECT_TRUE(WaitFor(monitor, [&] { return drops_.Of(model::DropReason::kGpuReadingsAbsurd) == 3; }));
  EXPECT_EQ(CountOf(Metric::kGpuXid), 0U);
}

TEST_F(MonitorTest, ReadsEverythingElseWithoutEvents) {
  fake_.Fail("event_set_create", GPUSONDE_NVML_ERROR_NOT_SUPPORTED);
  Monitor monitor = StartMonitor();
  EXPECT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuPower) > 0; }));
  EXPECT_TRUE(Reported("XIDs are not reported"));
}

TEST_F(MonitorTest, ReportsAFailingWaitOnceAndDoesNotSpin) {
  fake_.Fail("event_set_wait", GPUSONDE_NVML_ERROR_GPU_IS_LOST);
  Monitor monitor = StartMonitor();
  EXPECT_TRUE(WaitFor(monitor, [&] { return drops_.Of(model::DropReason::kGpuReadingsFailed) >= 3; }));
  EXPECT_EQ(std::ranges::count_if(texts_, [](const auto& text) { return text.contains("waiting for XIDs"); }),
            1);
}

TEST_F(MonitorTest, FindsADriverThatIsLoadedLater) {
  fake_.Fail("init", GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED);
  Monitor monitor = StartMonitor();
  ASSERT_TRUE(WaitFor(monitor, [&] { return fake_.calls("init") >= 3; }));
  EXPECT_EQ(texts_.size(), 1U) << "the same problem is reported once";
  EXPECT_TRUE(Reported("can't initialise NVML: fake error (9)"));
  fake_.Fail("init", GPUSONDE_NVML_SUCCESS);
  EXPECT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuPower) > 0; }));
}

TEST_F(MonitorTest, InitialisesNvmlAgainAfterTheDriverWasReloaded) {
  Monitor monitor = StartMonitor();
  ASSERT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuPower) > 0; }));
  fake_.Fail("utilization", GPUSONDE_NVML_ERROR_UNINITIALIZED);
  fake_.Fail("init", GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED);
  ASSERT_TRUE(WaitFor(
      monitor, [&] { return Reported("NVIDIA's driver was unloaded") && Reported("can't initialise"); }));
  fake_.Fail("utilization", GPUSONDE_NVML_SUCCESS);
  fake_.Fail("init", GPUSONDE_NVML_SUCCESS);
  readings_.clear();
  EXPECT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuPower) > 0; }));
  EXPECT_EQ(monitor.devices().size(), 1U) << "the same device";
}

TEST_F(MonitorTest, LooksAgainForADeviceThatFellOffTheBus) {
  fake_.SetGpus({{.uuid = "GPU-a"}, {.uuid = "GPU-b"}});
  Monitor monitor = StartMonitor();
  ASSERT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuPower, 1) > 0; }));
  const auto lost = GPUSONDE_NVML_ERROR_GPU_IS_LOST;
  fake_.Alter(1, [&](FakeNvml::Gpu& gpu) { gpu.fails = {{"utilization", lost}, {"uuid", lost}}; });
  ASSERT_TRUE(
      WaitFor(monitor, [&] { return Reported("GPU 1 (Fake) is lost") && Reported("GPU 1 is not read"); }));
  readings_.clear();
  ASSERT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuPower, 0) > 2; }))
      << "the other device is still read";
  EXPECT_EQ(CountOf(Metric::kGpuPower, 1), 0U);
  fake_.Alter(1, [&](FakeNvml::Gpu& gpu) { gpu.fails.clear(); });
  EXPECT_TRUE(WaitFor(monitor, [&] { return CountOf(Metric::kGpuPower, 1) > 0; }));
  EXPECT_TRUE(Reported("all GPUs are read again"));
}

TEST_F(MonitorTest, StopsDespiteACallThatNeverReturns) {
  fake_.Stick("power");
  {
    Monitor monitor = StartMonitor();
    ASSERT_TRUE(WaitFor(monitor, [&] { return fake_.calls("power") == 1; }));
  }
  fake_.FreeAll();  // the abandoned thread ends by itself
  while (fake_.calls("shutdown") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(MonitorTest, DropsAndCountsReadingsThatAreNotDrained) {
  std::vector<gpusonde_nvml_process> processes(8000);
  for (uint32_t i = 0; i < 8000; ++i) processes[i] = {i + 1, 1, 0, 0};
  fake_.SetGpus(std::vector<FakeNvml::Gpu>(20, FakeNvml::Gpu{.processes = processes}));
  Monitor monitor = StartMonitor();
  while (fake_.calls("energy") < 2 * 20) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  Drain(monitor);
  EXPECT_EQ(readings_.size(), 150'000U);
  EXPECT_GT(drops_.Of(model::DropReason::kGpuReadingsLost), 0);
}

// As in a container that has as many threads as it may have. An exception would end the whole agent.
TEST_F(MonitorTest, XidsAreMissingWhereNoThreadCanBeStarted) {
  enum { kDone, kNoFilter, kNoDevices, kNotReported };
  const pid_t child = ::fork();
  if (child == 0) {
    for (const uint32_t number : {SYS_clone, SYS_clone3})
      if (!RefuseCall({.number = number, .error = EAGAIN})) ::_exit(kNoFilter);
    const Library library(FakeNvml::functions());
    std::vector<std::string> problems;
    const auto devices = ListDevices(library, problems);
    if (!devices.has_value()) ::_exit(kNoDevices);
    Hub hub;
    const XidWatcher watcher(library, *devices, hub.PlacesOf(*devices), hub);
    const std::vector<Notice> notices = hub.Drain().notices;
    const bool reported = notices.size() == 1 && notices[0].is_problem &&
                          notices[0].text.starts_with("XIDs are not reported: can't start a thread: ");
    ::_exit(reported ? kDone : kNotReported);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this kernel has no seccomp filters";
  EXPECT_EQ(WEXITSTATUS(status), kDone);
}

TEST(Library, IsNotFoundWithoutADriver) {
  const auto library = Library::Open("libno-such-library.so.1");
  ASSERT_FALSE(library.has_value());
  EXPECT_EQ(library.error().code, ErrorCode::kNotFound);
}

TEST(Library, RejectsAnotherLibrary) {
  const auto library = Library::Open("libc.so.6");
  ASSERT_FALSE(library.has_value());
  EXPECT_EQ(library.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(library.error().message, HasSubstr("is not NVIDIA's management library"));
}

TEST(ListDevices, RejectsInvalidAnswers) {
  Functions functions = FakeNvml::functions();
  functions.device_count = [](uint32_t* count) {
    *count = UINT32_MAX;
    return gpusonde_nvml_result{GPUSONDE_NVML_SUCCESS};
  };
  std::vector<std::string> problems;
  EXPECT_FALSE(ListDevices(Library(functions), problems).has_value());
  functions = FakeNvml::functions();
  // A name without a terminator.
  functions.name = [](void*, char* text, uint32_t bytes) {
    std::fill_n(text, bytes, '\xff');
    return gpusonde_nvml_result{GPUSONDE_NVML_SUCCESS};
  };
  FakeNvml::Get().Reset();
  const auto devices = ListDevices(Library(functions), problems);
  ASSERT_TRUE(devices.has_value());
  EXPECT_THAT(devices->front().name, HasSubstr("\uFFFD"));
}

}  // namespace
}  // namespace gpusonde::nvml
