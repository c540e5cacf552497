// SPDX-License-Identifier: Apache-2.0
#include "admission/webhook.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "server/testing/http_client.h"

namespace gpusonde::admission {
namespace {

using testing::HasSubstr;

constexpr std::string_view kOtherReview =
    R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1"}})";

class Webhook : public testing::Test {
 protected:
  Webhook() : thread_([this] { server_->Run(); }) {}
  ~Webhook() override {
    server_->Stop();
    thread_.join();
  }
  server::HttpAnswer Send(std::string_view method, std::string_view target, std::string_view body = {}) {
    server::HttpClient client(server_->address().port);
    client.Send(
        fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    method, target, body.size(), body));
    return client.Receive().value();
  }

  std::unique_ptr<server::HttpServer> server_ =
      CreateWebhook({.listen = {.ip = "127.0.0.1", .port = 0}, .guard = {}, .library = "/l/inject.so"})
          .value();
  std::thread thread_;
};

TEST_F(Webhook, ReviewsAreAnsweredWhateverTimeoutTheApiServerAdds) {
  for (const char* target : {"/api/v1/admission", "/api/v1/admission?timeout=2s"}) {
    const auto answer = Send("POST", target, kOtherReview);
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.body, HasSubstr(R"("uid":"u-1","allowed":true)"));
  }
}

TEST_F(Webhook, ProbesAreAnsweredAndNothingElseIsThere) {
  EXPECT_EQ(Send("GET", "/healthz").status, 200);
  EXPECT_EQ(Send("GET", "/readyz").body, "ready\n");
  EXPECT_EQ(Send("GET", "/api/v1/admission").status, 404);
  EXPECT_EQ(Send("GET", "/").status, 404);
  EXPECT_EQ(Send("POST", "/api/v1/other", kOtherReview).status, 404);
  EXPECT_EQ(Send("POST", "/", kOtherReview).status, 405);
}

TEST_F(Webhook, MalformedAndHugeReviewsAreRefusedAndTheNextIsAnswered) {
  EXPECT_EQ(Send("POST", "/api/v1/admission", "[[[[").status, 400);
  EXPECT_EQ(Send("POST", "/api/v1/admission", std::string((1 << 20) + 1, ' ')).status, 413);
  EXPECT_EQ(Send("POST", "/api/v1/admission", std::string(1 << 16, '[')).status, 400);
  EXPECT_EQ(Send("POST", "/api/v1/admission", kOtherReview).status, 200);
}

}  // namespace
}  // namespace gpusonde::admission
