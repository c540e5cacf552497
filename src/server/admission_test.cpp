// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "server/testing/tokens_file.h"

namespace gpusonde::server {
namespace {

// The status of the refusal; 200 when admitted.
int StatusOf(const RequestHeader& header, const Gate& gate) {
  const auto request = Admit(header, gate);
  return request.has_value() ? 200 : request.error().status;
}
int StatusOf(const RequestHeader& header, const ListenAddress& listening = {"127.0.0.1", 7171}) {
  return StatusOf(header, Gate{.listening = listening});
}

RequestHeader Good() { return {.method = "GET", .target = "/", .hosts = 1, .host = "localhost:7171"}; }

RequestHeader WithHost(std::string_view host) {
  RequestHeader header = Good();
  header.host = host;
  return header;
}

TEST(Admit, OnLoopbackOnlyNamesOfThisMachineAreServed) {
  for (const char* host : {"localhost", "LocalHost:1", "127.0.0.1:7171", "[::1]:7171", "[::1]"})
    EXPECT_EQ(StatusOf(WithHost(host)), 200) << host;
  for (const char* host : {"", "evil.example", "evil.example:7171", "localhost.evil.example",
                           "127.0.0.1.nip.io", "localhost:7171@evil.example", "0.0.0.0:7171", "127.0.0.2"})
    EXPECT_EQ(StatusOf(WithHost(host)), 403) << host;
}

TEST(Admit, AnotherLoopbackAddressIsServedByItsName) {
  EXPECT_EQ(StatusOf(WithHost("127.0.0.2:1"), ListenAddress{"127.0.0.2", 1}), 200);
}

class AdmitWithTokens : public testing::Test {
 protected:
  // Of a request with the token of this name.
  int StatusOfToken(const std::string& name, std::string_view target, std::string_view method = "GET") const {
    const std::string authorization = "Bearer " + TokensFile::Of(name);
    RequestHeader header = Good();
    header.method = method;
    header.target = target;
    header.authorization = authorization;
    return StatusOf(header, gate_);
  }

  const TokensFile file_{{{"agent", Scope::kIngest},
                          {"scraper", Scope::kMetrics},
                          {"ada", Scope::kRead},
                          {"root", Scope::kAdmin}}};
  const std::shared_ptr<Access> access_ = file_.Open();
  Gate gate_{.listening = {"0.0.0.0", 7171}, .access = access_.get(), .takes_posts = true};
};

TEST_F(AdmitWithTokens, OnlyRequestsWithOneAndHealthProbesAreServed) {
  const auto status = [this](std::string_view authorization, std::string_view target = "/metrics") {
    RequestHeader header = Good();
    header.target = target;
    header.authorization = authorization;
    return StatusOf(header, gate_);
  };
  const std::string token = TokensFile::Of("ada");
  EXPECT_EQ(status("Bearer " + token), 200);
  EXPECT_EQ(status("bearer " + token), 200);
  for (const std::string& other : {std::string(), std::string("Bearer "), "Bearer " + token + "0",
                                   "Bearer " + token.substr(1), "Basic " + token, token, "Bearer  " + token})
    EXPECT_EQ(status(other), 401) << other;
  EXPECT_EQ(status("", "/healthz"), 200);
  EXPECT_EQ(status("", "/readyz"), 200);
  EXPECT_EQ(status("", "/healthz/.."), 401);
  EXPECT_EQ(status("", "/"), 401);
}

TEST_F(AdmitWithTokens, EachScopeOpensItsPart) {
  for (const auto& [name, frames, metrics, data] : {std::tuple("agent", 200, 403, 403),
                                                    {"scraper", 403, 200, 403},
                                                    {"ada", 403, 200, 200},
                                                    {"root", 200, 200, 200},
                                                    {"nobody", 401, 401, 401}}) {
    EXPECT_EQ(StatusOfToken(name, "/api/v1/frames", "POST"), frames) << name;
    EXPECT_EQ(StatusOfToken(name, "/metrics"), metrics) << name;
    EXPECT_EQ(StatusOfToken(name, "/api/v1/overview"), data) << name;
  }
}

TEST_F(AdmitWithTokens, WhileTheyCantBeReadNobodyIsServed) {
  file_.WriteText("nonsense");
  EXPECT_EQ(StatusOfToken("root", "/api/v1/overview"), 503);
  EXPECT_EQ(StatusOfToken("root", "/healthz"), 200);
}

TEST_F(AdmitWithTokens, ATokenMakesUpForTheNameOfTheHost) {
  gate_.listening = {"127.0.0.1", 7171};
  RequestHeader header = WithHost("proxy.example");
  EXPECT_EQ(StatusOf(header, gate_), 401);
  const std::string authorization = "Bearer " + TokensFile::Of("ada");
  header.authorization = authorization;
  EXPECT_EQ(StatusOf(header, gate_), 200);
}

class AdmitSessions : public AdmitWithTokens {
 protected:
  void SetUp() override {
    gate_.sign_in = true;
    gate_.tls = true;
    gate_.post_scope = Scope::kAdmin;
  }
  RequestHeader WithCookie(std::string_view target, const std::string& cookie) const {
    RequestHeader header = WithHost("gpus.example:7171");
    header.target = target;
    header.cookie = cookie;
    return header;
  }
  std::string CookieOf(const std::string& name) const {
    return CookieName(gate_) + "=" + access_->SignIn(TokensFile::Of(name), Scope::kMetrics).value().secret;
  }
};

TEST_F(AdmitSessions, TheCookieOfASessionIsAsGoodAsItsToken) {
  const std::string cookie = CookieOf("ada");
  EXPECT_EQ(StatusOf(WithCookie("/api/v1/overview", cookie), gate_), 200);
  EXPECT_EQ(StatusOf(WithCookie("/api/v1/overview", "a=b; " + cookie + "; c=d"), gate_), 200);
  for (const std::string& other :
       {std::string(), "x" + cookie, cookie + "0", CookieName(gate_) + "=", CookieName(gate_),
        std::string(";;=;"), "gpusonde-7172" + cookie.substr(20)})
    EXPECT_EQ(StatusOf(WithCookie("/api/v1/overview", other), gate_), 401) << other;
  EXPECT_EQ(StatusOf(WithCookie("/api/v1/overview", CookieOf("scraper")), gate_), 403);
  gate_.sign_in = false;
  EXPECT_EQ(StatusOf(WithCookie("/api/v1/overview", cookie), gate_), 401) << "only where browsers sign in";
}

TEST_F(AdmitSessions, ThePageAndSigningInNeedNone) {
  for (const char* target : {"/", "/assets/x.js", "/healthz", "/api/v1/session"})
    EXPECT_EQ(StatusOf(WithCookie(target, ""), gate_), 200) << target;
  RequestHeader header = WithCookie("/api/v1/sign-in", "");
  header.method = "POST";
  EXPECT_EQ(StatusOf(header, gate_), 200);
  header.target = "/api/v1/anything";
  EXPECT_EQ(StatusOf(header, gate_), 401);
}

TEST_F(AdmitSessions, AgentsLearnThatTheySendToTheWrongAddress) {
  RequestHeader header = WithCookie("/api/v1/frames?host=a", "");
  header.method = "POST";
  const std::string authorization = "Bearer " + TokensFile::Of("agent");
  header.authorization = authorization;
  const auto refused = Admit(header, gate_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().status, 405);
  EXPECT_NE(refused.error().body->find("--listen"), std::string::npos) << *refused.error().body;
}

TEST_F(AdmitSessions, WhoTheyAreOfIsKnownToHandlers) {
  const auto request = Admit(WithCookie("/api/v1/session", CookieOf("ada")), gate_);
  ASSERT_TRUE(request.has_value());
  ASSERT_TRUE(request->caller.has_value());
  EXPECT_EQ(request->caller->name, "ada");
  EXPECT_EQ(request->session.size(), 68u);
  EXPECT_FALSE(Admit(WithCookie("/api/v1/session", ""), gate_)->caller.has_value());
}

TEST_F(AdmitSessions, APostComesFromThisServersOwnPage) {
  const std::string cookie = CookieOf("ada");
  RequestHeader header = WithCookie("/api/v1/sign-out", cookie);
  header.method = "POST";
  EXPECT_EQ(StatusOf(header, gate_), 403) << "with a session and no Origin";
  for (const char* origin : {"https://gpus.example:7171", "https://GPUS.example:7171"}) {
    header.origin = origin;
    EXPECT_EQ(StatusOf(header, gate_), 200) << origin;
  }
  for (const char* origin : {"https://evil.example", "https://gpus.example", "http://gpus.example:7171",
                             "null", "https://gpus.example:7171.evil.example", "gpus.example:7171"}) {
    header.origin = origin;
    EXPECT_EQ(StatusOf(header, gate_), 403) << origin;
  }
  gate_.tls = false;  // behind a proxy that may have it
  header.cookie = "";
  for (const char* origin : {"https://gpus.example:7171", "http://gpus.example:7171"}) {
    header.origin = origin;
    EXPECT_EQ(StatusOf(header, gate_), 200) << origin;
  }
  header.origin = "https://gpus.example:7171";
  header.fetch_site = "same-site";
  EXPECT_EQ(StatusOf(header, gate_), 403);
}

TEST(Admit, PostsAreForTheApiOfAServerThatTakesThem) {
  const auto status = [](std::string_view target, bool takes_posts, std::string_view method = "POST") {
    RequestHeader header = Good();
    header.method = method;
    header.target = target;
    return StatusOf(header, {.listening = {"127.0.0.1", 7171}, .takes_posts = takes_posts});
  };
  EXPECT_EQ(status("/api/v1/frames", true), 200);
  EXPECT_EQ(status("/api/v1/frames", false), 405);
  EXPECT_EQ(status("/", true), 405);
  EXPECT_EQ(status("/api/v1/frames", true, "PUT"), 405);
}

TEST(Admit, OnOtherAddressesEveryNameIsServed) {
  EXPECT_EQ(StatusOf(WithHost("gpu-node-7.cluster:7171"), ListenAddress{"0.0.0.0", 7171}), 200);
}

TEST(Admit, AsksForExactlyOneHost) {
  for (const size_t hosts : {0, 2}) {
    RequestHeader header = Good();
    header.hosts = hosts;
    EXPECT_EQ(StatusOf(header), 400);
  }
}

TEST(Admit, OnlyReadingIsSupported) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get"}) {
    RequestHeader header = Good();
    header.method = method;
    EXPECT_EQ(StatusOf(header), 405) << method;
  }
}

TEST(Admit, AddressesAreBounded) {
  RequestHeader header = Good();
  const std::string longest = "/" + std::string(kMaxTargetBytes - 1, 'a');
  header.target = longest;
  EXPECT_EQ(StatusOf(header), 200);
  const std::string longer = longest + "a";
  header.target = longer;
  EXPECT_EQ(StatusOf(header), 414);
}

TEST(Admit, PagesOfOtherSitesMayLinkHereButNotUseTheApi) {
  RequestHeader header = Good();
  for (const char* site : {"cross-site", "same-site"}) {
    header.fetch_site = site;
    header.target = "/";
    EXPECT_EQ(StatusOf(header), 200) << site;
    header.target = "/api/v1/flamegraph";
    EXPECT_EQ(StatusOf(header), 403) << site;
    header.target = "/%61pi/v1/flamegraph";
    EXPECT_EQ(StatusOf(header), 403) << site;
  }
  for (const char* site : {"", "same-origin", "none"}) {
    header.fetch_site = site;
    EXPECT_EQ(StatusOf(header), 200) << site;
  }
}

}  // namespace
}  // namespace gpusonde::server
