// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.h"
#include "sources/ebpf/testing/host_signals_fixture.h"

namespace gpusonde::ebpf {
namespace {

using NetworkWaitsTest = HostSignalsFixture;

// A connection over loopback: {one end, the other}.
std::pair<int, int> Connect(int family = AF_INET) {
  const int listener = ::socket(family, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (family == AF_INET) {
    auto* ipv4 = reinterpret_cast<sockaddr_in*>(&address);
    *ipv4 = {};
    ipv4->sin_family = AF_INET;
    ipv4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  EXPECT_EQ(::bind(listener, generic, length), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  EXPECT_EQ(::getsockname(listener, generic, &length), 0);
  const int client = ::socket(family, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(client, generic, length), 0);
  const int server = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  return {client, server};
}

TEST_F(NetworkWaitsTest, AWaitEndedByAPacketIsANetworkWaitAndNamesTheSender) {
  // The network programs can be attached and detached.
  ASSERT_TRUE(signals_->WatchNetwork(true).has_value());
  const auto [client, server] = Connect();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Burn(200 * kNanosPerMilli);
    (void)!::write(server, "1", 1);
    ::_exit(0);
  }
  int64_t network_ns = 0, for_child_ns = 0;
  char byte = 0;
  ASSERT_EQ(::read(client, &byte, 1), 1);
  ASSERT_TRUE(signals_
                  ->Drain(sources::VisitOnly([&](const SignalSum& sum) {
                    if (sum.tid != ::gettid() || sum.signal != GPUSONDE_SIGNAL_NETWORK) return;
                    network_ns += sum.amount;
                    if (sum.other == child) for_child_ns += sum.amount;
                  }))
                  .has_value());
  ::waitpid(child, nullptr, 0);
  ::close(client);
  ::close(server);
  EXPECT_GE(network_ns, 150 * kNanosPerMilli);
  // Another CPU may have received the packet: then no process is named, and never a wrong one.
  EXPECT_TRUE(for_child_ns == network_ns || for_child_ns == 0) << for_child_ns;
  ASSERT_TRUE(signals_->WatchNetwork(false).has_value());
}

class LocalServerTest : public HostSignalsFixture, public ::testing::WithParamInterface<int> {
 protected:
  // A process that isn't a target, and calls `serve` when it has read a byte.
  pid_t StartServer(int server, const auto& serve) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      char byte = 0;
      (void)!::read(server, &byte, 1);
      serve();
      ::_exit(0);
    }
    StartAgain();
    return child;
  }

  // For how long this thread waited for one that answers after 200 ms.
  int64_t WaitForAnswer() {
    const auto [client, server] = Connect(GetParam());
    const pid_t child = StartServer(server, [server = server] {
      Burn(200 * kNanosPerMilli);
      (void)!::write(server, "1", 1);
    });
    EXPECT_EQ(::write(client, "1", 1), 1);
    char byte = 0;
    EXPECT_EQ(::read(client, &byte, 1), 1);
    const int64_t waited_ns = DrainWaitsFor(child, GPUSONDE_SIGNAL_NETWORK);
    ::waitpid(child, nullptr, 0);
    ::close(client);
    ::close(server);
    return waited_ns;
  }

  // For how long it waited for one that reads nothing for 200 ms, and then all.
  int64_t WaitForRoom() {
    const auto [client, server] = Connect(GetParam());
    const pid_t child = StartServer(server, [server = server] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      for (std::array<char, 1 << 16> some; ::read(server, some.data(), some.size()) > 0;) {
      }
    });
    ::close(server);
    const std::vector<char> more_than_fits(16 << 20);
    EXPECT_EQ(::write(client, more_than_fits.data(), more_than_fits.size()), ssize_t{16 << 20});
    const int64_t waited_ns = DrainWaitsFor(child, GPUSONDE_SIGNAL_NETWORK);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(client);
    return waited_ns;
  }
};

// The kernel's own thread receives the packet on a busy machine: then nobody is named.
TEST_P(LocalServerTest, AWaitForItsAnswerNamesIt) {
  constexpr int kAttempts = 5;
  int64_t waited_ns = 0;
  for (int i = 0; i < kAttempts && waited_ns == 0; ++i) waited_ns = WaitForAnswer();
  EXPECT_GE(waited_ns, 150 * kNanosPerMilli);
}

// A server that is slow to read: who writes waits until there is room.
TEST_P(LocalServerTest, AWaitForItToReadNamesIt) {
  constexpr int kAttempts = 5;
  int64_t waited_ns = 0;
  for (int i = 0; i < kAttempts && waited_ns == 0; ++i) waited_ns = WaitForRoom();
  EXPECT_GE(waited_ns, 150 * kNanosPerMilli);
}

INSTANTIATE_TEST_SUITE_P(By, LocalServerTest, ::testing::Values(AF_INET, AF_INET6),
                         [](const auto& family) { return family.param == AF_INET ? "IPv4" : "IPv6"; });

}  // namespace
}  // namespace gpusonde::ebpf
