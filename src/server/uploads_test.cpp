// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "base/cancellation.h"
#include "server/http_server.h"
#include "server/testing/http_client.h"
#include "server/testing/tokens_file.h"

namespace gpusonde::server {
namespace {

using testing::HasSubstr;

constexpr size_t kMaxBody = 1000;

// A server with a token that answers a POST with its body.
class UploadsTest : public testing::Test {
 protected:
  void SetUp() override { Start(kMaxBody); }
  void TearDown() override { Stop(); }
  void Start(size_t max_body, std::chrono::milliseconds body_timeout = std::chrono::seconds(30),
             bool posts_ask = false) {
    const auto reply = [](std::string text) {
      return HttpResponse{.content_type = "text/plain",
                          .body = std::make_shared<const std::string>(std::move(text))};
    };
    server_ = HttpServer::Create({.guard = {.access = tokens_.Open()},
                                  .posts_ask = posts_ask,
                                  .max_body_bytes = max_body,
                                  .max_bodies_bytes = 2 * max_body,
                                  .body_timeout = body_timeout},
                                 {.api = [=](const HttpRequest&) { return reply("got"); },
                                  .files = [=](const HttpRequest&) { return reply("file"); },
                                  .uploads =
                                      [=, this](const HttpRequest& request) {
                                        ++uploads_;
                                        if (request.body == "wait") AwaitCancellation();
                                        return reply(request.path + " " + request.body);
                                      }})
                  .value();
    thread_ = std::thread([this] { server_->Run(); });
  }
  void Stop() {
    server_->Stop();
    thread_.join();
  }
  HttpClient Connect() const { return HttpClient(server_->address().port); }

  void AwaitCancellation() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (!Cancellation::IsRequested() && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cancelled_.set_value(Cancellation::IsRequested());
  }

  static std::string Head(std::string_view more, std::string_view token = "token of agent") {
    return fmt::format("POST /api/x HTTP/1.1\r\nHost: proxy\r\nAuthorization: Bearer {}\r\n{}\r\n", token,
                       more);
  }
  static std::string Post(std::string_view body) {
    return Head(fmt::format("Content-Length: {}\r\n", body.size())) + std::string(body);
  }

  const TokensFile tokens_{{{"agent", Scope::kIngest}}};
  std::atomic<int> uploads_ = 0;
  std::promise<bool> cancelled_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(UploadsTest, BodiesReachTheHandlerOnKeptConnections) {
  HttpClient client = Connect();
  for (const std::string& body : {std::string("one"), std::string(), std::string(kMaxBody, 'x')}) {
    client.Send(Post(body));
    EXPECT_EQ(client.Receive().value().body, "/api/x " + body);
  }
  client.Send(Head("Transfer-Encoding: chunked\r\n") + "3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(client.Receive().value().body, "/api/x abc");
}

TEST_F(UploadsTest, ABodyMayHaveAsManyBytesAsTheAddressAllows) {
  Stop();
  Start(size_t{4} << 20);  // Beast's own limit is 1 MiB
  const std::string body(size_t{4} << 20, 'x');
  HttpClient client = Connect();
  client.Send(Post(body));
  const HttpAnswer answer = client.Receive().value();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body.size(), body.size() + std::string_view("/api/x ").size());
}

TEST_F(UploadsTest, ALongBodyIsRefusedBeforeItIsSent) {
  HttpClient client = Connect();
  client.Send(Head("Content-Length: 1001\r\n"));
  const HttpAnswer answer = client.Receive().value();
  EXPECT_EQ(answer.status, 413);
  EXPECT_THAT(answer.body, HasSubstr("1001 bytes, the limit is 1000"));
  HttpClient endless = Connect();
  endless.Send(Head("Transfer-Encoding: chunked\r\n") + "3e9\r\n" + std::string(1001, 'x'));
  EXPECT_EQ(endless.Receive().value().status, 413);
  EXPECT_EQ(uploads_, 0);
}

TEST_F(UploadsTest, ABodyWithoutTheTokenIsNotRead) {
  for (const char* token : {"token of agenX", "token of agent0", ""}) {
    HttpClient client = Connect();
    client.Send(Head("Content-Length: 900\r\n", token));
    EXPECT_EQ(client.Receive().value().status, 401);
    EXPECT_TRUE(client.IsClosed());
  }
}

TEST_F(UploadsTest, BodiesThatStillArriveAreBoundedTogether) {
  HttpClient first = Connect(), second = Connect(), third = Connect();
  first.Send(Head("Content-Length: 1000\r\n") + "x");
  second.Send(Head("Content-Length: 1000\r\n") + "x");
  // Until the server has read both heads.
  int status = 0;
  for (int i = 0; i < 1000 && status != 503; ++i) {
    HttpClient client = Connect();
    client.Send(Post("x"));
    status = client.Receive().value().status;
  }
  EXPECT_EQ(status, 503);
  first.Send(std::string(999, 'x'));
  EXPECT_EQ(first.Receive().value().status, 200);
  third.Send(Post("y"));
  EXPECT_EQ(third.Receive().value().body, "/api/x y");
}

TEST_F(UploadsTest, ABodyThatStallsLosesItsPlaceHoweverLongItSaysToBe) {
  Stop();
  constexpr size_t kLong = size_t{16} << 20;  // 256 s at the rate that a client must have
  Start(kLong, std::chrono::milliseconds(100));
  HttpClient first = Connect(), second = Connect();
  for (HttpClient* client : {&first, &second})
    client->Send(Head(fmt::format("Content-Length: {}\r\n", kLong)) + "x");
  EXPECT_TRUE(first.IsClosed());
  EXPECT_TRUE(second.IsClosed());
  HttpClient third = Connect();
  third.Send(Post("y"));
  EXPECT_EQ(third.Receive().value().body, "/api/x y");
}

TEST_F(UploadsTest, AClientThatWaitsToBeAskedForItsBodyIsAsked) {
  HttpClient client = Connect();
  client.Send(Head("Content-Length: 5\r\nExpect: 100-Continue\r\n"));
  EXPECT_EQ(client.Receive().value().status, 100);
  client.Send("whole");
  EXPECT_EQ(client.Receive().value().body, "/api/x whole");
  client.Send(Head("Content-Length: 1001\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(client.Receive().value().status, 413) << "before it is asked for";
}

TEST_F(UploadsTest, APostThatAsksIsCancelledWhenItsClientHangsUp) {
  Stop();
  Start(kMaxBody, std::chrono::seconds(30), /*posts_ask=*/true);
  {
    HttpClient client = Connect();
    client.Send(Post("wait"));
    while (uploads_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(cancelled_.get_future().get());
}

TEST_F(UploadsTest, HalfABodyReachesNobody) {
  {
    HttpClient client = Connect();
    client.Send(Head("Content-Length: 900\r\n") + "half");
  }
  HttpClient client = Connect();
  client.Send(Post("whole"));
  EXPECT_EQ(client.Receive().value().body, "/api/x whole");
  EXPECT_EQ(uploads_, 1);
}

}  // namespace
}  // namespace gpusonde::server
