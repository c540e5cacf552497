// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/testing/certificate.h"
#include "base/time.h"

namespace gpusonde::net {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
namespace http = boost::beast::http;
using testing::HasSubstr;

constexpr int64_t kTimeoutNs = 60 * kNanosPerSecond;

// Serves one connection over TLS on loopback, answers with this status, and keeps the request.
class TlsServer {
 public:
  TlsServer(const Identity& identity, unsigned status) : status_(status) {
    context_.use_certificate(asio::buffer(identity.certificate), ssl::context::pem);
    context_.use_private_key(asio::buffer(identity.key), ssl::context::pem);
    thread_ = std::thread([this] { Serve(); });
  }
  ~TlsServer() { thread_.join(); }

  HttpUrl url(std::string host) const {
    return {.tls = true,
            .host = std::move(host),
            .port = std::to_string(acceptor_.local_endpoint().port()),
            .target = "/hook"};
  }
  // Call after the exchange.
  const http::request<http::string_body>& request() const { return request_; }

 private:
  void Serve() {
    boost::system::error_code error;
    ssl::stream<asio::ip::tcp::socket> stream(acceptor_.accept(), context_);
    stream.handshake(ssl::stream_base::server, error);
    if (error) return;
    boost::beast::flat_buffer buffer;
    http::read(stream, buffer, request_, error);
    if (error) return;
    http::response<http::empty_body> response(static_cast<http::status>(status_), 11);
    http::write(stream, response, error);
    stream.shutdown(error);
  }

  unsigned status_;
  asio::io_context loop_;
  asio::ip::tcp::acceptor acceptor_{loop_, {asio::ip::address_v4::loopback(), 0}};
  ssl::context context_{ssl::context::tls_server};
  http::request<http::string_body> request_;
  std::thread thread_;
};

class HttpPostTls : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_) << identity_.certificate;
    ::unsetenv("SSL_CERT_FILE");
  }
  void TearDown() override {
    ::unsetenv("SSL_CERT_FILE");
    std::filesystem::remove(file_);
  }
  void Trust() { ::setenv("SSL_CERT_FILE", file_.c_str(), 1); }

  Identity identity_;
  // Tests run side by side, each in a process of its own.
  std::string file_ = testing::TempDir() + "gpusonde-http-post-" + std::to_string(::getpid()) + ".pem";
};

TEST_F(HttpPostTls, AServerWithATrustedCertificateGetsTheBody) {
  Trust();
  Status done;
  std::string body, host;
  {
    TlsServer server(identity_, 204);
    done = HttpPost(server.url("localhost"), "{\"a\":1}", kTimeoutNs);
    body = server.request().body();
    host = server.request()[http::field::host];
  }
  EXPECT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(body, "{\"a\":1}");
  EXPECT_THAT(host, HasSubstr("localhost:"));
}

TEST_F(HttpPostTls, AServerWithAnUntrustedCertificateGetsNothing) {
  TlsServer server(identity_, 204);
  const Status done = HttpPost(server.url("localhost"), "{}", kTimeoutNs);
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, HasSubstr("certificate"));
}

TEST_F(HttpPostTls, AnAuthorityThatIsGivenReplacesThoseOfTheMachine) {
  const HttpBody body{.content = "x"};
  {
    TlsServer server(identity_, 200);
    const auto reply = HttpExchange(server.url("localhost"), body, 100, kTimeoutNs, {.ca = file_});
    ASSERT_TRUE(reply.has_value()) << reply.error().message;
    EXPECT_EQ(reply->status, 200u);
  }
  Trust();
  const Identity other;
  const std::string other_file = file_ + ".other";
  std::ofstream(other_file) << other.certificate;
  TlsServer server(identity_, 200);
  const auto reply = HttpExchange(server.url("localhost"), body, 100, kTimeoutNs, {.ca = other_file});
  std::filesystem::remove(other_file);
  ASSERT_FALSE(reply.has_value());
  EXPECT_THAT(reply.error().message, HasSubstr("its CA is not in " + other_file));
}

TEST_F(HttpPostTls, AnExpiredCertificateIsNamedWithTheClock) {
  const Identity expired(-7200, -3600);
  std::ofstream(file_) << expired.certificate;
  TlsServer server(expired, 200);
  const auto reply = HttpExchange(server.url("localhost"), {.content = "x"}, 100, kTimeoutNs, {.ca = file_});
  ASSERT_FALSE(reply.has_value());
  EXPECT_THAT(reply.error().message, HasSubstr("expired; this machine's clock says 20"));
}

TEST(HttpExchange, ARefusalIsReadThoughTheServerClosesBeforeTheBodysEnd) {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  const HttpUrl url{.host = "127.0.0.1", .port = std::to_string(acceptor.local_endpoint().port())};
  std::thread server([&] {
    asio::ip::tcp::socket socket = acceptor.accept();
    boost::system::error_code error;
    std::array<char, 1000> head;
    socket.read_some(asio::buffer(head), error);
    asio::write(socket, asio::buffer(std::string_view("HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")),
                error);
    // Closing with unread data resets the connection.
  });
  const std::string body(size_t{16} << 20, 'x');
  const auto reply = HttpExchange(url, {.content = body}, 100, kTimeoutNs);
  server.join();
  ASSERT_TRUE(reply.has_value()) << reply.error().message;
  EXPECT_EQ(reply->status, 401u);
  EXPECT_EQ(reply->body, "no");
}

TEST(HttpExchange, TlsToAServerWithoutItSaysSo) {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  const HttpUrl url{
      .tls = true, .host = "127.0.0.1", .port = std::to_string(acceptor.local_endpoint().port())};
  std::thread server([&] {
    asio::ip::tcp::socket socket = acceptor.accept();
    boost::system::error_code error;
    asio::write(socket, asio::buffer(std::string_view("HTTP/1.1 400 Bad Request\r\n\r\n")), error);
    std::array<char, 1000> hello;
    socket.read_some(asio::buffer(hello), error);
  });
  const auto reply = HttpExchange(url, {.content = "x"}, 100, kTimeoutNs);
  server.join();
  ASSERT_FALSE(reply.has_value());
  EXPECT_THAT(reply.error().message, HasSubstr("doesn't speak TLS"));
}

TEST_F(HttpPostTls, ACertificateIsForItsOwnNames) {
  Trust();
  TlsServer server(identity_, 204);
  const Status done = HttpPost(server.url("127.0.0.1"), "{}", kTimeoutNs);
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, HasSubstr("it is not for the name 127.0.0.1"));
}

TEST_F(HttpPostTls, AResponseThatIsNoSuccessIsAnError) {
  Trust();
  TlsServer server(identity_, 500);
  const Status done = HttpPost(server.url("localhost"), "{}", kTimeoutNs);
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, HasSubstr("500"));
}

TEST(HttpGet, HasNoBodyAndReadsTheResponseUpToItsBound) {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  const HttpUrl url{
      .host = "127.0.0.1", .port = std::to_string(acceptor.local_endpoint().port()), .target = "/api?x=1"};
  http::request<http::string_body> request;
  std::thread server([&] {
    for (int i = 0; i < 2; ++i) {
      asio::ip::tcp::socket socket = acceptor.accept();
      boost::beast::flat_buffer buffer;
      boost::system::error_code error;
      request = {};
      http::read(socket, buffer, request, error);
      http::response<http::string_body> response(http::status::not_found, 11, "ten bytes.");
      response.prepare_payload();
      http::write(socket, response, error);
    }
  });
  const Result<HttpReply> whole = HttpGet(url, "", 10, kTimeoutNs);
  const Result<HttpReply> longer = HttpGet(url, "Bearer abc", 9, kTimeoutNs);
  server.join();
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_EQ(whole->status, 404u);
  EXPECT_EQ(whole->body, "ten bytes.");
  EXPECT_EQ(request.method(), http::verb::get);
  EXPECT_EQ(request.target(), "/api?x=1");
  EXPECT_EQ(request.count(http::field::content_type), 0u);
  EXPECT_EQ(request[http::field::authorization], "Bearer abc") << "of the second";
  EXPECT_FALSE(longer.has_value());
}

TEST(HttpPost, ASilentServerTimesOut) {
  asio::io_context loop;
  const asio::ip::tcp::acceptor silent(loop, {asio::ip::address_v4::loopback(), 0});
  const HttpUrl url{.host = "127.0.0.1", .port = std::to_string(silent.local_endpoint().port())};
  const Status done = HttpPost(url, "{}", kNanosPerSecond / 5);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().message, "no response in time");
  EXPECT_EQ(done.error().code, ErrorCode::kIo) << "it runs";
}

TEST(HttpUrl, IsSplitIntoPartsAndNothingElseIsAccepted) {
  const Result<HttpUrl> plain = HttpUrl::Parse("http://alerts:9093/api?x=1");
  ASSERT_TRUE(plain.has_value());
  EXPECT_FALSE(plain->tls);
  EXPECT_EQ(plain->host, "alerts");
  EXPECT_EQ(plain->port, "9093");
  EXPECT_EQ(plain->target, "/api?x=1");
  const Result<HttpUrl> v6 = HttpUrl::Parse("http://[::1]:80");
  ASSERT_TRUE(v6.has_value());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->target, "/");
  EXPECT_EQ(HttpUrl::Parse("http://host")->port, "80");
  const Result<HttpUrl> tls = HttpUrl::Parse("https://hooks.example/T0?k=v");
  ASSERT_TRUE(tls.has_value());
  EXPECT_TRUE(tls->tls);
  EXPECT_EQ(tls->port, "443");
  EXPECT_EQ(tls->target, "/T0?k=v");
  for (const char* text :
       {"", "host", "ftp://host", "http://", "https://", "http://:80", "http://host:", "http://host:x",
        "http://[::1", "http://a b/", "http://host/\r\nX: y", "http://user@host/", "http://host:123456",
        "http://host:65536", "http://host:0", "http://host:+80"})
    EXPECT_FALSE(HttpUrl::Parse(text).has_value()) << text;
}

}  // namespace
}  // namespace gpusonde::net
