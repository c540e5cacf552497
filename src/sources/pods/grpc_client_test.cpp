// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/grpc_client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/temporary_folder.h"
#include "sources/pods/testing/grpc_server.h"

namespace gpusonde::pods {
namespace {

using testing::HasSubstr;

class GrpcClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder.has_value());
    folder_.emplace(*std::move(folder));
    socket_ = folder_->path() + "/s";
  }
  Result<std::string> Call(int64_t timeout_ns = 5 * kNanosPerSecond) {
    return CallGrpc({.socket = socket_,
                     .method = "/v1.Test/Call",
                     .request = "question",
                     .max_reply_bytes = 2 << 20,
                     .timeout_ns = timeout_ns});
  }
  void ExpectError(const GrpcServer::Reply& reply, ErrorCode code, std::string_view message) {
    const GrpcServer server(socket_, [&](const std::string&) { return reply; });
    const auto answer = Call(kNanosPerSecond);
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, code) << answer.error().message;
    EXPECT_THAT(answer.error().message, HasSubstr(message));
  }

  std::optional<TemporaryFolder> folder_;
  std::string socket_;
};

TEST_F(GrpcClientTest, ReturnsTheMessage) {
  const GrpcServer server(socket_, [](const std::string& method) {
    return GrpcServer::Reply{.body = GrpcServer::Framed("answer to " + method)};
  });
  const auto answer = Call();
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(*answer, "answer to /v1.Test/Call");
  EXPECT_TRUE(Call().has_value()) << "again, on another connection";
}

TEST_F(GrpcClientTest, AnEmptyMessageIsOne) {
  const GrpcServer server(
      socket_, [](const std::string&) { return GrpcServer::Reply{.body = GrpcServer::Framed("")}; });
  EXPECT_EQ(Call(), "");
}

TEST_F(GrpcClientTest, RepliesOfSomeMegabytesAndNoLonger) {
  for (const size_t size : {size_t{2} << 20, (size_t{2} << 20) + 1}) {
    const GrpcServer server(socket_, [&](const std::string&) {
      return GrpcServer::Reply{.body = GrpcServer::Framed(std::string(size, 'x'))};
    });
    const auto answer = Call();
    ASSERT_EQ(answer.has_value(), size == size_t{2} << 20);
    if (answer.has_value())
      EXPECT_EQ(answer->size(), size);
    else
      EXPECT_EQ(answer.error().message, "the reply has more than 2 MiB");
  }
}

TEST_F(GrpcClientTest, FailuresThatTheServerReports) {
  ExpectError({.body = "", .status = "12"}, ErrorCode::kUnsupported,
              "gRPC status 12: as the test\nhas it %4");
  ExpectError({.body = "", .status = "7"}, ErrorCode::kPermissionDenied, "status 7");
  ExpectError({.body = "", .status = "14"}, ErrorCode::kUnavailable, "status 14");
}

TEST_F(GrpcClientTest, RepliesThatAreNone) {
  ExpectError({.body = GrpcServer::Framed("x"), .status = ""}, ErrorCode::kCorrupt, "no gRPC status");
  ExpectError({.body = ""}, ErrorCode::kCorrupt, "no message");
  ExpectError({.body = std::string("\0\0\0\0\x09x", 6)}, ErrorCode::kCorrupt, "1 bytes instead of 9");
  ExpectError({.body = std::string("\1\0\0\0\1x", 6)}, ErrorCode::kCorrupt, "compressed");
  ExpectError({.body = "", .raw = "HTTP/1.1 400 Bad Request\r\n\r\n"}, ErrorCode::kCorrupt, "HTTP/2");
}

TEST_F(GrpcClientTest, AServerThatHangsIsNotWaitedFor) {
  const GrpcServer server(socket_, [](const std::string&) { return GrpcServer::Reply{.hangs = true}; });
  const auto answer = Call(300 * kNanosPerMilli);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().message, "no reply within 0.3 s");
}

TEST_F(GrpcClientTest, AStopEndsTheWait) {
  const GrpcServer server(socket_, [](const std::string&) { return GrpcServer::Reply{.hangs = true}; });
  std::stop_source stop;
  const std::jthread stopper([&] {
    while (server.calls() == 0) std::this_thread::yield();
    stop.request_stop();
  });
  const auto answer =
      CallGrpc({.socket = socket_, .method = "/x", .request = {}, .timeout_ns = 600 * kNanosPerSecond},
               stop.get_token());
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().message, "stopped");
}

TEST_F(GrpcClientTest, SocketsThatNobodyAnswersAt) {
  EXPECT_EQ(Call().error().code, ErrorCode::kNotFound);
  {
    const GrpcServer server(socket_, [](const std::string&) { return GrpcServer::Reply(); });
  }
  const Fd file = Open(socket_, O_CREAT | O_WRONLY).value();
  EXPECT_EQ(Call().error().code, ErrorCode::kUnavailable) << "a file";
  socket_ = folder_->path() + "/" + std::string(120, 's');
  EXPECT_EQ(Call().error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace gpusonde::pods
