// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "base/temporary_folder.h"
#include "sources/pods/testing/grpc_server.h"
#include "sources/pods/testing/message_writer.h"

namespace gpusonde::pods {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string OneDevice(std::string_view pod) {
  return Bytes(1,
               Bytes(1, pod) + Bytes(2, "ml") +
                   Bytes(3, Bytes(1, "worker") + Bytes(2, Bytes(1, "nvidia.com/gpu") + Bytes(2, "GPU-a"))));
}

class WatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder.has_value());
    folder_.emplace(*std::move(folder));
    kubelet_ = folder_->path() + "/kubelet";
    runtime_ = folder_->path() + "/runtime";
  }
  std::unique_ptr<Watcher> Start(std::vector<std::string> runtimes = {}) {
    return Watcher::Start({.kubelet_socket = kubelet_,
                           .runtime_sockets = std::move(runtimes),
                           .labels = {},
                           .period_ns = 20 * kNanosPerMilli,
                           .timeout_ns = 200 * kNanosPerMilli,
                           .urgent_interval_ns = kNanosPerMilli,
                           .longest_retry_ns = 40 * kNanosPerMilli});
  }
  template <class Drain>
  static auto WaitFor(Drain drain) {
    auto found = drain();
    for (int i = 0; i < 2000 && !found.has_value(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      found = drain();
    }
    return found;
  }
  GrpcServer::Handler Telling(std::string message) {
    return [message = std::move(message)](const std::string&) {
      return GrpcServer::Reply{.body = GrpcServer::Framed(message)};
    };
  }

  std::optional<TemporaryFolder> folder_;
  std::string kubelet_, runtime_;
};

TEST_F(WatcherTest, ReadsBothAndOnlyWhatIsNew) {
  const GrpcServer kubelet(kubelet_, Telling(OneDevice("train-7")));
  const GrpcServer runtime(runtime_, [](const std::string& method) {
    const bool containers = method.ends_with("ListContainers");
    return GrpcServer::Reply{.body = GrpcServer::Framed(
                                 containers ? Bytes(1, Bytes(1, "c1") + Bytes(3, Bytes(1, "worker"))) : "")};
  });
  const auto watcher = Start({folder_->path() + "/absent", runtime_});
  const auto devices = WaitFor([&] { return watcher->DrainDevices(); });
  ASSERT_TRUE(devices.has_value());
  ASSERT_THAT(devices->found.devices, SizeIs(1));
  EXPECT_EQ(devices->found.devices[0].pod, "train-7");
  EXPECT_GT(devices->time_ns, 0);
  const auto containers = WaitFor([&] { return watcher->DrainContainers(); });
  ASSERT_TRUE(containers.has_value());
  EXPECT_TRUE(containers->by_id.contains("c1"));
}

TEST_F(WatcherTest, APodThatHasEndedHasNoDevices) {
  std::atomic<uint64_t> state = 0;
  const GrpcServer kubelet(kubelet_, Telling(OneDevice("job-1") + OneDevice("job-2")));
  const GrpcServer runtime(runtime_, [&](const std::string& method) {
    const std::string sandbox =
        Bytes(1, Bytes(1, "s1") + Bytes(2, Bytes(1, "job-1") + Bytes(3, "ml")) + Number(3, state));
    return GrpcServer::Reply{.body = GrpcServer::Framed(method.ends_with("ListPodSandbox") ? sandbox : "")};
  });
  const auto watcher = Start({runtime_});
  const auto of_pods = [&](size_t pods) {
    return WaitFor([&]() -> std::optional<PodDevices> {
      const auto drained = watcher->DrainDevices();
      if (!drained.has_value() || drained->found.devices.size() != pods) return std::nullopt;
      return drained->found;
    });
  };
  EXPECT_TRUE(of_pods(2).has_value());
  state = 1;
  const auto left = of_pods(1);
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->devices[0].pod, "job-2");
}

TEST_F(WatcherTest, AMachineWithoutSocketsIsNotWarnedOf) {
  testing::internal::CaptureStderr();
  {
    const auto watcher = Start({runtime_});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(watcher->DrainDevices().has_value());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(WatcherTest, ARestartIsLoggedOnceEachWay) {
  testing::internal::CaptureStderr();
  {
    auto kubelet = std::make_unique<GrpcServer>(kubelet_, Telling(OneDevice("before")));
    const auto watcher = Start();
    ASSERT_TRUE(WaitFor([&] { return watcher->DrainDevices(); }).has_value());
    kubelet.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    while (watcher->DrainDevices().has_value()) {
    }
    kubelet = std::make_unique<GrpcServer>(kubelet_, Telling(OneDevice("after")));
    const auto devices = WaitFor([&] { return watcher->DrainDevices(); });
    ASSERT_TRUE(devices.has_value());
    EXPECT_EQ(devices->found.devices.at(0).pod, "after");
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("kubelet's pod-resources API does not answer at " + kubelet_));
  EXPECT_THAT(log, HasSubstr("kubelet's pod-resources API answers again at " + kubelet_));
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;
}

TEST_F(WatcherTest, AServerThatHangsFromTheBeginningIsWarnedOf) {
  testing::internal::CaptureStderr();
  {
    const GrpcServer kubelet(kubelet_, [](const std::string&) { return GrpcServer::Reply{.hangs = true}; });
    const auto watcher = Start();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("no reply within 0.2 s"));
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
}

TEST_F(WatcherTest, ARuntimeWithoutTheCriIsNoProblemWithoutKubernetes) {
  testing::internal::CaptureStderr();
  {
    const GrpcServer docker(runtime_, [](const std::string&) { return GrpcServer::Reply{.status = "12"}; });
    const auto watcher = Start({folder_->path() + "/absent", runtime_});
    while (docker.calls() < 2) std::this_thread::yield();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(WatcherTest, PollSoonAsksAtOnce) {
  const GrpcServer kubelet(kubelet_, Telling(OneDevice("p")));
  const auto watcher = Watcher::Start({.kubelet_socket = kubelet_,
                                       .runtime_sockets = {},
                                       .labels = {},
                                       .period_ns = 600 * kNanosPerSecond,
                                       .urgent_interval_ns = kNanosPerMilli});
  ASSERT_TRUE(WaitFor([&] { return watcher->DrainDevices(); }).has_value());
  EXPECT_EQ(kubelet.calls(), 1);
  watcher->PollSoon();
  EXPECT_TRUE(WaitFor([&] { return watcher->DrainDevices(); }).has_value());
}

}  // namespace
}  // namespace gpusonde::pods
