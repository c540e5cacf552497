// SPDX-License-Identifier: Apache-2.0
#include "server/http_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/cancellation.h"
#include "server/testing/http_client.h"

// Asio's allocations fail while it is set: they go through aligned_alloc alone.
static std::atomic<bool> allocations_fail = false;

extern "C" void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return allocations_fail ? nullptr : ::memalign(alignment, size);
}

namespace gpusonde::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

HttpResponse Text(std::string text) {
  return {.content_type = "text/plain", .body = std::make_shared<const std::string>(std::move(text))};
}

// A server whose API returns the request.
class HttpServerTest : public testing::Test {
 protected:
  void Start(const HttpServerOptions& options = {}) {
    auto server =
        HttpServer::Create(options, {.api = [this](const HttpRequest& request) { return Api(request); },
                                     .files = [](const HttpRequest&) { return Text("file"); },
                                     .uploads = {}});
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  void TearDown() override {
    if (!gate_.try_wait()) gate_.count_down();
    Stop();
  }
  void Stop() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
  }
  HttpClient Connect() const {
    HttpClient client(server_->address().port);
    EXPECT_TRUE(client.connected());
    return client;
  }

  // The path of the next request that reached the API, in any order.
  std::string Asked() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !asked_.empty(); });
    std::string path = asked_.back();
    asked_.pop_back();
    return path;
  }

  HttpResponse Api(const HttpRequest& request) {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request.path);
      arrived_.notify_one();
    }
    if (request.path == "/api/throw") throw std::runtime_error("out of luck");
    if (request.path == "/api/no-memory") throw std::bad_alloc();
    if (request.path == "/api/wait") gate_.wait();
    if (request.path == "/api/cancel") {
      const auto give_up = std::chrono::steady_clock::now() + kPatient;
      while (!Cancellation::IsRequested() && std::chrono::steady_clock::now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      cancelled_.set_value(Cancellation::IsRequested());
    }
    if (request.path == "/api/timed") {
      HttpResponse timed = Text("timed");
      timed.cpu_ns = 1'234'567;
      return timed;
    }
    if (request.path == "/api/large") return Text(std::string(8 << 20, 'x'));
    std::string answer = request.path;
    for (const auto& [name, value] : request.query) answer += fmt::format(" {}={}", name, value);
    return Text(answer);
  }

  static constexpr std::chrono::seconds kPatient{100};  // however slow the machine is

  std::latch gate_{1};
  std::promise<bool> cancelled_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> asked_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, ConnectionsAreKeptAndRequestsDecoded) {
  Start();
  HttpClient client = Connect();
  EXPECT_EQ(client.Get("/").body, "file");
  EXPECT_EQ(client.Get("/api/a%20b?x=1+2&y=%26").body, "/api/a b x=1 2 y=&");
  const HttpAnswer answer = client.Get("/api/c");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Cache-Control"), "no-store");
  EXPECT_EQ(answer.Header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(answer.Header("Referrer-Policy"), "no-referrer");
  EXPECT_THAT(answer.Header("Content-Security-Policy"), HasSubstr("default-src 'none'; script-src 'self'"));
}

TEST_F(HttpServerTest, AnAnswerSaysWhatItCostWhereThatWasMeasured) {
  Start();
  HttpClient client = Connect();
  EXPECT_EQ(client.Get("/api/timed").Header("Server-Timing"), "cpu;dur=1.235");
  EXPECT_EQ(client.Get("/api/a").Header("Server-Timing"), "");
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  Start();
  HttpClient client = Connect();
  std::string requests;
  for (int i = 0; i < 100; ++i)
    requests += "GET /api/" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_TRUE(client.Send(requests));
  for (int i = 0; i < 100; ++i) {
    const auto answer = client.Receive();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->body, "/api/" + std::to_string(i));
  }
}

TEST_F(HttpServerTest, ARequestIsCancelledWhenItsClientHangsUp) {
  Start();
  {
    HttpClient client = Connect();
    // The end comes behind a request that isn't read yet.
    client.Send(
        "GET /api/cancel HTTP/1.1\r\nHost: localhost\r\n\r\n"
        "GET /api/next HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(Asked(), "/api/cancel");
  }
  EXPECT_TRUE(cancelled_.get_future().get());
  EXPECT_EQ(Connect().Get("/api/other").body, "/api/other");
}

TEST_F(HttpServerTest, HeadHasTheHeadersOfGetAndNoBody) {
  Start();
  HttpClient client = Connect();
  client.Send("HEAD /api/abc HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto answer = client.Receive(false);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->Header("Content-Length"), "8");
  EXPECT_EQ(client.Get("/api/next").body, "/api/next") << "no body was sent in between";
}

TEST_F(HttpServerTest, LongAnswersAreGzippedWhenAccepted) {
  Start();
  HttpClient client = Connect();
  const HttpAnswer zipped = client.Get("/api/large", "Accept-Encoding: br, gzip\r\n");
  EXPECT_EQ(zipped.Header("Content-Encoding"), "gzip");
  EXPECT_THAT(zipped.body, StartsWith("\x1f\x8b"));
  EXPECT_EQ(client.Get("/api/large").body.size(), size_t{8} << 20);
  EXPECT_EQ(client.Get("/api/short", "Accept-Encoding: gzip\r\n").Header("Content-Encoding"), "");
}

TEST_F(HttpServerTest, OtherMethodsAreRefusedAndSayWhatIsAllowed) {
  Start();
  HttpClient client = Connect();
  client.Send("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto answer = client.Receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 405);
  EXPECT_EQ(answer->Header("Allow"), "GET, HEAD");
  EXPECT_THAT(answer->body, HasSubstr(R"({"error":{"code":"unsupported")"));
}

TEST_F(HttpServerTest, BodiesAreRefusedUnread) {
  Start();
  for (const char* header :
       {"Content-Length: 5", "Content-Length: 999999999999", "Transfer-Encoding: chunked"}) {
    HttpClient client = Connect();
    client.Send(std::string("GET / HTTP/1.1\r\nHost: localhost\r\n") + header + "\r\n\r\n");
    const auto answer = client.Receive();
    ASSERT_TRUE(answer.has_value()) << header;
    EXPECT_EQ(answer->status, 413) << header;
    EXPECT_TRUE(client.IsClosed()) << header;
  }
}

TEST_F(HttpServerTest, AnotherHostIsForbidden) {
  Start();
  HttpClient client = Connect();
  client.Send("GET /api/x HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  const auto answer = client.Receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 403);
  EXPECT_THAT(answer->body, HasSubstr("not 'evil.example'"));
}

TEST_F(HttpServerTest, AHeaderBeyondTheLimitIsRefusedWhileItStillArrives) {
  Start();
  HttpClient client = Connect();
  client.Send("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(200 << 10, 'x'));
  const auto answer = client.Receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 431);
}

TEST_F(HttpServerTest, AnAddressBeyondTheLimitIsRefused) {
  Start();
  HttpClient client = Connect();
  EXPECT_EQ(client.Get("/" + std::string(9000, 'a')).status, 414);
  EXPECT_EQ(client.Get("/api/fine").status, 200) << "the connection stays open";
}

TEST_F(HttpServerTest, InvalidHttpIsRefusedAndTheConnectionClosed) {
  Start();
  for (const char* bytes : {"hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET\r\n\r\n",
                            "\x16\x03\x01\x02\r\n\r\n", "GET / HTTP/1.1\r\nHost localhost\r\n\r\n"}) {
    HttpClient client = Connect();
    client.Send(bytes);
    const auto answer = client.Receive();
    ASSERT_TRUE(answer.has_value()) << bytes;
    EXPECT_EQ(answer->status, 400) << bytes;
    EXPECT_THAT(answer->body, HasSubstr("malformed HTTP")) << bytes;
    EXPECT_TRUE(client.IsClosed()) << bytes;
  }
}

TEST_F(HttpServerTest, AddressesThatDoNotDecodeOrLeaveTheRootAreRefused) {
  Start();
  HttpClient client = Connect();
  EXPECT_EQ(client.Get("/%zz").status, 400);
  EXPECT_EQ(client.Get("/%").status, 400);
  EXPECT_EQ(client.Get("http://localhost/").status, 400);
  EXPECT_EQ(client.Get("/?a=%FF").status, 400);
}

TEST_F(HttpServerTest, PartialRequestsBlockNobody) {
  Start();
  std::vector<HttpClient> partial;
  for (int i = 0; i < 20; ++i) partial.push_back(Connect()), partial.back().Send("GET / HT");
  EXPECT_EQ(Connect().Get("/api/x").body, "/api/x");
  partial.clear();
  EXPECT_EQ(Connect().Get("/api/y").body, "/api/y");
}

TEST_F(HttpServerTest, SixHundredSlowConnectionsAndAsManyMalformedRequestsBlockNobody) {
  // Both ends of every connection are in this process, where shells allow 1024 descriptors.
  rlimit descriptors{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  const rlimit before = descriptors;
  descriptors.rlim_cur = descriptors.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &descriptors), 0);
  Start();
  std::vector<HttpClient> slow;
  for (int i = 0; i < 600; ++i) {
    slow.push_back(Connect());
    slow.back().Send("GET /api/slow HTTP/1.1\r\nHost: loc");
    HttpClient malformed = Connect();
    malformed.Send(fmt::format("GET /{} HTTP/1.{}\r\nHost localhost\r\n\r\n", i, i));
    const auto answer = malformed.Receive();
    ASSERT_TRUE(answer.has_value()) << i;
    EXPECT_EQ(answer->status, 400) << i;
    if (i % 50 == 0) {
      EXPECT_EQ(Connect().Get("/api/x").body, "/api/x") << i;
    }
  }
  slow.clear();
  EXPECT_EQ(Connect().Get("/api/y").body, "/api/y");
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(HttpServerTest, AClientThatNeverEndsItsRequestIsClosed) {
  Start({.header_timeout = std::chrono::milliseconds(100)});
  HttpClient silent = Connect();
  HttpClient slow = Connect();
  slow.Send("GET / HTTP/1.1\r\n");
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(slow.IsClosed());
}

TEST_F(HttpServerTest, FilesAreAnsweredWhileEveryWorkerIsBusy) {
  Start({.workers = 1});
  HttpClient busy = Connect();
  busy.Send("GET /api/wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(Asked(), "/api/wait");
  EXPECT_EQ(Connect().Get("/").body, "file");
  gate_.count_down();
  EXPECT_EQ(busy.Receive().value().body, "/api/wait");
}

TEST_F(HttpServerTest, AClientThatDoesNotReadItsAnswerBlocksNobody) {
  Start();
  std::vector<HttpClient> stalled;
  for (int i = 0; i < 8; ++i) {
    stalled.push_back(Connect());
    stalled.back().Send("GET /api/large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  EXPECT_EQ(Connect().Get("/api/x").body, "/api/x");
}

TEST_F(HttpServerTest, AnswersNobodyFetchesAreBoundedInMemory) {
  Start({.workers = 1});
  std::vector<HttpClient> stalled;
  int refused = 0;
  // 8 MiB each; some of it fits into the socket's buffers.
  for (int i = 0; i < 60 && refused == 0; ++i) {
    stalled.push_back(Connect());
    stalled.back().Send("GET /api/large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (Connect().Get("/api/x").status == 503) ++refused;
  }
  EXPECT_EQ(refused, 1);
  stalled.clear();
  HttpClient client = Connect();
  for (int tries = 0; tries < 1000 && client.Get("/api/x").status != 200; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(client.Get("/api/x").status, 200) << "they are gone with their clients";
}

TEST_F(HttpServerTest, TwoHundredConnectionsAtOnceAreAllAnswered) {
  Start();
  std::vector<HttpClient> clients;
  clients.reserve(200);
  for (int i = 0; i < 200; ++i) clients.push_back(Connect());
  for (HttpClient& client : clients) client.Send("GET /api/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (HttpClient& client : clients) {
    const auto answer = client.Receive();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 200);
  }
}

TEST_F(HttpServerTest, BeyondTheLimitTheLongestWaitingConnectionMakesRoom) {
  Start({.max_connections = 3});
  HttpClient first = Connect();
  HttpClient second = Connect();
  HttpClient third = Connect();
  for (HttpClient* client : {&second, &third, &first}) EXPECT_EQ(client->Get("/").status, 200);
  HttpClient fourth = Connect();
  EXPECT_EQ(fourth.Get("/").status, 200);
  EXPECT_TRUE(second.IsClosed());
  EXPECT_EQ(first.Get("/").status, 200);
  EXPECT_EQ(third.Get("/").status, 200);
}

TEST_F(HttpServerTest, WhenEveryConnectionIsBeingAnsweredNewOnesAreClosed) {
  Start({.max_connections = 2});
  HttpClient first = Connect();
  HttpClient second = Connect();
  for (HttpClient* client : {&first, &second}) {
    client->Send("GET /api/wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(Asked(), "/api/wait");
  }
  HttpClient third = Connect();
  EXPECT_TRUE(third.IsClosed());
  gate_.count_down();
  EXPECT_EQ(first.Receive().value().status, 200);
  EXPECT_EQ(second.Receive().value().status, 200);
}

TEST_F(HttpServerTest, AHandlerThatThrowsIsA500) {
  Start();
  HttpClient client = Connect();
  const HttpAnswer answer = client.Get("/api/throw");
  EXPECT_EQ(answer.status, 500);
  EXPECT_THAT(answer.body, HasSubstr("out of luck"));
  EXPECT_EQ(client.Get("/api/x").status, 200);
}

TEST_F(HttpServerTest, AnAnswerThatDoesNotFitIntoMemoryIsA503AndSaysWhatToDo) {
  Start();
  HttpClient client = Connect();
  const HttpAnswer answer = client.Get("/api/no-memory");
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("--memory-limit-mb"));
  EXPECT_EQ(client.Get("/api/x").status, 200);
}

TEST_F(HttpServerTest, ManyClientsAskAtOnce) {
  Start();
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([this, i, &answered] {
      HttpClient client = Connect();
      for (int j = 0; j < 50; ++j) {
        const std::string path = "/api/" + std::to_string(i) + "/" + std::to_string(j);
        if (client.Get(path).body == path) ++answered;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 400);
}

TEST_F(HttpServerTest, WithoutMemoryForAConnectionLaterOnesAreAccepted) {
  const auto counts = std::make_shared<HttpCounts>();
  Start({.guard = {.tls = {}, .access = {}, .counts = counts}});
  HttpClient before = Connect();
  EXPECT_EQ(before.Get("/").status, 200);
  // The same thread answers, so it awaits the next request of `before` by then, for which it needs memory.
  EXPECT_EQ(Connect().Get("/").status, 200);
  allocations_fail = true;
  const HttpClient during = Connect();
  while (counts->turned_away == 0) std::this_thread::yield();
  allocations_fail = false;
  EXPECT_EQ(before.Get("/").status, 200);
  EXPECT_EQ(Connect().Get("/").status, 200);
}

TEST_F(HttpServerTest, APortInUseIsNamedWithWhatToDo) {
  Start();
  const auto second = HttpServer::Create({.listen = server_->address()}, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(server_->address().port)));
  EXPECT_THAT(second.error().message, HasSubstr("stop it or choose another port"));
}

TEST(HttpServer, AnAddressOfAnotherMachineIsRefused) {
  const auto server = HttpServer::Create({.listen = {"192.0.2.1", 0}}, {});
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(HttpServerTest, StopsWithConnectionsOpen) {
  Start();
  HttpClient idle = Connect();
  EXPECT_EQ(idle.Get("/").status, 200);
  HttpClient partial = Connect();
  partial.Send("GET");
  Stop();
  EXPECT_TRUE(idle.IsClosed());
}

TEST_F(HttpServerTest, StoppingCancelsWhatIsBeingAnswered) {
  Start();
  HttpClient client = Connect();
  client.Send("GET /api/cancel HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(Asked(), "/api/cancel");
  Stop();
  EXPECT_TRUE(cancelled_.get_future().get());
}

TEST(HttpServer, StopBeforeRunEndsItAtOnce) {
  const auto server = HttpServer::Create({}, {}).value();
  server->Stop();
  server->Run();
  server->Stop();
}

TEST(HttpServer, NeverRunItIsDestroyedCleanly) { EXPECT_TRUE(HttpServer::Create({}, {}).has_value()); }

}  // namespace
}  // namespace gpusonde::server
