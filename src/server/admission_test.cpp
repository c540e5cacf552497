// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <gtest/gtest.h>

#include <string>

namespace gpusonde::server {
namespace {

// The status of the refusal; 200 when admitted.
int StatusOf(const RequestHeader& header, const ListenAddress& listening = {"127.0.0.1", 7171},
             std::string_view token = {}) {
  const auto request = Admit(header, listening, token);
  return request.has_value() ? 200 : request.error().status;
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
  EXPECT_EQ(StatusOf(WithHost("127.0.0.2:1"), {"127.0.0.2", 1}), 200);
}

TEST(Admit, WithATokenOnlyRequestsThatCarryItAndHealthProbesAreServed) {
  const auto status = [](std::string_view authorization, std::string_view target = "/metrics") {
    RequestHeader header = Good();
    header.target = target;
    header.authorization = authorization;
    return StatusOf(header, {"0.0.0.0", 7171}, "0123456789abcdef");
  };
  EXPECT_EQ(status("Bearer 0123456789abcdef"), 200);
  EXPECT_EQ(status("bearer 0123456789abcdef"), 200);
  for (const char* other : {"", "Bearer ", "Bearer 0123456789abcdeX", "Bearer 0123456789abcdef0",
                            "Basic 0123456789abcdef", "0123456789abcdef", "Bearer 0123456789ABCDEF"})
    EXPECT_EQ(status(other), 401) << other;
  EXPECT_EQ(status("", "/healthz"), 200);
  EXPECT_EQ(status("", "/readyz"), 200);
  EXPECT_EQ(status("", "/healthz/.."), 401);
}

TEST(Admit, ATokenMakesUpForTheNameOfTheHost) {
  RequestHeader header = WithHost("proxy.example");
  EXPECT_EQ(StatusOf(header, {"127.0.0.1", 7171}, "0123456789abcdef"), 401);
  header.authorization = "Bearer 0123456789abcdef";
  EXPECT_EQ(StatusOf(header, {"127.0.0.1", 7171}, "0123456789abcdef"), 200);
}

TEST(Admit, PostsAreForTheApiOfAServerThatTakesThem) {
  const auto status = [](std::string_view target, bool takes_posts, std::string_view method = "POST") {
    RequestHeader header = Good();
    header.method = method;
    header.target = target;
    const auto request = Admit(header, {"127.0.0.1", 7171}, {}, takes_posts);
    return request.has_value() ? 200 : request.error().status;
  };
  EXPECT_EQ(status("/api/v1/frames", true), 200);
  EXPECT_EQ(status("/api/v1/frames", false), 405);
  EXPECT_EQ(status("/", true), 405);
  EXPECT_EQ(status("/api/v1/frames", true, "PUT"), 405);
}

TEST(Admit, OnOtherAddressesEveryNameIsServed) {
  EXPECT_EQ(StatusOf(WithHost("gpu-node-7.cluster:7171"), {"0.0.0.0", 7171}), 200);
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
