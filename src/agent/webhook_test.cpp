// SPDX-License-Identifier: Apache-2.0
#include "agent/webhook.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/time.h"

namespace gpusonde::agent {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kWebhookTimeoutNs = 60 * kNanosPerSecond;

// An HTTP server on loopback that gives these responses, one per connection, and keeps the requests.
class Server {
 public:
  explicit Server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, length), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &length), 0);
    port_ = std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  Webhook::Options options() const {
    return {.url = {.host = "127.0.0.1", .port = port_, .target = "/hook?a=1"},
            .machine = "node7",
            .pause_ns = kNanosPerMilli};
  }
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void Serve() {
    for (const std::string& answer : answers_) {
      const Fd connection(::accept(listener_.get(), nullptr, nullptr));
      if (!connection.valid()) return;
      std::string request;
      std::array<char, 4096> part{};
      // The bodies end with two braces.
      while (!request.ends_with("}}")) {
        const ssize_t got = ::recv(connection.get(), part.data(), part.size(), 0);
        if (got <= 0) break;
        request.append(part.data(), static_cast<size_t>(got));
      }
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      (void)!::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  const Fd listener_{::socket(AF_INET, SOCK_STREAM, 0)};
  std::string port_;
  std::vector<std::string> answers_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

diagnose::Report ReportOf(const std::string& sentence) {
  diagnose::Report report;
  report.incident.cause = "cpu_contention";
  report.incident.sentence = sentence;
  report.process_name = "train";
  return report;
}

TEST(Webhook, AnIncidentIsOnePost) {
  Server server({"HTTP/1.1 204 No Content\r\n\r\n"});
  Webhook webhook(server.options());
  webhook.Post(ReportOf("Steps slowed 2.2× by \"stress\"."));
  ASSERT_TRUE(webhook.Flush(kWebhookTimeoutNs));
  EXPECT_EQ(webhook.counts().delivered, 1);
  EXPECT_EQ(webhook.counts().retried, 0);
  const std::vector<std::string> requests = server.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0], StartsWith("POST /hook?a=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_THAT(requests[0],
              HasSubstr(R"({"version":1,"machine":"node7","state":"open","withdrawn":false,"incident":{)"));
  EXPECT_THAT(requests[0], HasSubstr(R"("process":"train")"));
  EXPECT_THAT(requests[0], HasSubstr(R"(by \"stress\".)"));
  const size_t body = requests[0].find("\r\n\r\n") + 4;
  EXPECT_THAT(requests[0],
              HasSubstr("Content-Length: " + std::to_string(requests[0].size() - body) + "\r\n"));
}

TEST(Webhook, AFailedAttemptIsRepeatedAndCounted) {
  Server server({"HTTP/1.1 503 Busy\r\n\r\n", "", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"});
  Webhook webhook(server.options());
  webhook.Post(ReportOf("first"));
  webhook.Post(ReportOf("second"));
  ASSERT_TRUE(webhook.Flush(kWebhookTimeoutNs));
  EXPECT_EQ(webhook.counts().delivered, 2);
  EXPECT_EQ(webhook.counts().retried, 2);
  EXPECT_EQ(webhook.counts().given_up, 0);
  EXPECT_THAT(server.requests().back(), HasSubstr("second"));
}

TEST(Webhook, AnIncidentIsGivenUpAfterTheLastAttempt) {
  Webhook::Options options = Server({}).options();  // no longer listens
  Webhook webhook(options);
  webhook.Post(ReportOf("lost"));
  ASSERT_TRUE(webhook.Flush(kWebhookTimeoutNs));
  EXPECT_EQ(webhook.counts().delivered, 0);
  EXPECT_EQ(webhook.counts().retried, Webhook::kAttempts - 1);
  EXPECT_EQ(webhook.counts().given_up, 1);
}

TEST(Webhook, ASilentServerBlocksNobodyAndDroppedIncidentsAreCounted) {
  Server server({});
  Webhook::Options options = server.options();
  options.pause_ns = 3600 * kNanosPerSecond;
  const size_t posts = 2 * Webhook::kMaxWaiting;
  Webhook webhook(options);
  for (size_t i = 0; i < posts; ++i) webhook.Post(ReportOf("many"));
  EXPECT_FALSE(webhook.Flush(0));
  EXPECT_GE(webhook.counts().given_up, static_cast<int64_t>(posts - Webhook::kMaxWaiting - 1));
}

}  // namespace
}  // namespace gpusonde::agent
