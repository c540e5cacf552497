// SPDX-License-Identifier: Apache-2.0
#include "otlp/push.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <otlp.pb.h>

#include <atomic>
#include <boost/beast/http.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "net/testing/http_receiver.h"

namespace gpusonde::otlp {
namespace {

namespace http = boost::beast::http;
using net::HttpReceiver;

constexpr auto kPatience = std::chrono::seconds(30);
constexpr int64_t kNever = 3600 * kNanosPerSecond;

// Renders "1", "2", … with as many items.
std::function<Result<std::vector<Request>>(bool)> Counting() {
  return [number = int64_t{0}](bool /*last*/) mutable -> Result<std::vector<Request>> {
    ++number;
    return std::vector<Request>{{.body = std::to_string(number), .items = number}};
  };
}

Push::Options OptionsFor(const HttpReceiver& receiver) {
  return {.signal = "metrics",
          .url = {.host = "127.0.0.1", .port = std::to_string(receiver.port()), .target = "/v1/metrics"},
          .interval_ns = 10 * kNanosPerMilli,
          .render = Counting(),
          .first_pause_ns = kNanosPerMilli,
          .max_pause_ns = 10 * kNanosPerMilli,
          .finish_ns = 30 * kNanosPerSecond};
}

TEST(Push, SendsEachRequestInOrderWithTheHeadersOfTheFile) {
  TempFolder folder;
  ASSERT_TRUE(
      WriteFileAtomically(folder / "headers", "Authorization: Bearer abc\nX-Tenant: 7\n").has_value());
  HttpReceiver receiver([](const HttpReceiver::Request&) { return HttpReceiver::Answer{}; });
  Push::Options options = OptionsFor(receiver);
  options.headers_file = folder / "headers";
  Push push(options);
  for (int number = 1; number <= 3; ++number) {
    const HttpReceiver::Request request = receiver.Next();
    EXPECT_EQ(request.body(), std::to_string(number));
    EXPECT_EQ(request.target(), "/v1/metrics");
    EXPECT_EQ(request[http::field::content_type], "application/x-protobuf");
    EXPECT_EQ(request[http::field::content_encoding], "gzip");
    EXPECT_EQ(request[http::field::authorization], "Bearer abc");
    EXPECT_EQ(request["X-Tenant"], "7");
  }
}

TEST(Push, RepeatsWhatIsNotTakenAndLosesNothing) {
  std::atomic<int> answered = 0;
  static constexpr unsigned kStatuses[] = {503, 200, 429, 502, 504, 200};
  HttpReceiver receiver([&answered](const HttpReceiver::Request&) {
    const int number = answered++;
    return HttpReceiver::Answer{.status = number < 6 ? kStatuses[number] : 200};
  });
  std::vector<std::string> bodies;
  {
    Push push(OptionsFor(receiver));
    for (int i = 0; i < 8; ++i) bodies.push_back(receiver.Next().body());
    push.Finish();
    const Push::Counts counts = push.counts();
    EXPECT_EQ(counts.retries, 4);
    EXPECT_EQ(counts.dropped, 0);
    EXPECT_EQ(counts.rejected, 0);
    EXPECT_EQ(counts.waiting, 0);
    EXPECT_GE(counts.accepted, 1 + 2 + 3 + 4);
  }
  EXPECT_THAT(bodies, testing::ElementsAre("1", "1", "2", "2", "2", "2", "3", "4"));
}

TEST(Push, WaitsAsLongAsTheReceiverAsks) {
  std::atomic<int64_t> first_ns = 0;
  HttpReceiver receiver([&first_ns](const HttpReceiver::Request&) {
    int64_t none = 0;
    return first_ns.compare_exchange_strong(none, MonotonicNow())
               ? HttpReceiver::Answer{.status = 503, .retry_after = "1"}
               : HttpReceiver::Answer{};
  });
  Push push(OptionsFor(receiver));
  EXPECT_EQ(receiver.Next().body(), "1");
  EXPECT_EQ(receiver.Next().body(), "1");
  EXPECT_GE(MonotonicNow() - first_ns, kNanosPerSecond);
}

TEST(Push, DropsAndCountsWhatIsRefused) {
  HttpReceiver receiver([](const HttpReceiver::Request& request) {
    return HttpReceiver::Answer{.status = request.body() == "2" ? 400U : 200U};
  });
  Push push(OptionsFor(receiver));
  for (const char* body : {"1", "2", "3"}) EXPECT_EQ(receiver.Next().body(), body);
  push.Finish();
  EXPECT_EQ(push.counts().dropped, 2);
  EXPECT_EQ(push.counts().retries, 0);
}

TEST(Push, CountsWhatIsRejectedOfARequest) {
  exporters::otlp::ExportResponse partial;
  partial.mutable_partial_success()->set_rejected(2);
  partial.mutable_partial_success()->set_error_message("out of order");
  HttpReceiver receiver([body = partial.SerializeAsString()](const HttpReceiver::Request& request) {
    return HttpReceiver::Answer{.body = request.body() == "3" ? body : ""};
  });
  Push push(OptionsFor(receiver));
  for (const char* body : {"1", "2", "3"}) EXPECT_EQ(receiver.Next().body(), body);
  push.Finish();
  EXPECT_EQ(push.counts().rejected, 2);
  EXPECT_EQ(push.counts().dropped, 0);
}

TEST(Push, DropsTheOldestAboveTheBoundAndCountsThem) {
  HttpReceiver receiver(
      [](const HttpReceiver::Request&) { return HttpReceiver::Answer{.status = 503, .retry_after = "600"}; });
  std::mutex mutex;
  std::condition_variable changed;
  Push::Counts last;
  Push::Options options = OptionsFor(receiver);
  options.max_waiting = 3;
  options.on_counts = [&](const Push::Counts& counts) {
    const std::lock_guard lock(mutex);
    last = counts;
    changed.notify_all();
  };
  options.finish_ns = kNanosPerMilli;
  Push push(options);
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, kPatience, [&last] { return last.dropped >= 1 + 2; }));
    EXPECT_EQ(last.waiting, 3);
  }
  push.Finish();
  const Push::Counts counts = push.counts();
  EXPECT_EQ(counts.accepted, 0);
  EXPECT_GE(counts.dropped, 1 + 2 + 3 + 4 + 5) << "those that waited at the end as well";
}

TEST(Push, GivesUpAReceiverThatHangsAndAsksItAgain) {
  std::atomic<int> asked = 0;
  HttpReceiver receiver([&asked](const HttpReceiver::Request&) {
    return asked++ == 0 ? std::nullopt : std::optional(HttpReceiver::Answer{});
  });
  Push::Options options = OptionsFor(receiver);
  options.timeout_ns = 50 * kNanosPerMilli;
  Push push(options);
  EXPECT_EQ(receiver.Next().body(), "1");
  EXPECT_EQ(receiver.Next().body(), "1");
  push.Finish();
  EXPECT_EQ(push.counts().dropped, 0);
}

TEST(Push, FinishSendsWhatIsNewAndOneThatIsDestroyedDoesNot) {
  HttpReceiver receiver([](const HttpReceiver::Request&) { return HttpReceiver::Answer{}; });
  Push::Options options = OptionsFor(receiver);
  options.interval_ns = kNever;
  std::vector<int> last_ones;
  options.render = [&last_ones](bool last) -> Result<std::vector<Request>> {
    last_ones.push_back(last ? 1 : 0);
    return std::vector<Request>{{.body = "end", .items = 5}};
  };
  {
    Push push(options);
    push.Finish();
    EXPECT_EQ(push.counts().accepted, 5);
    EXPECT_EQ(receiver.Next().body(), "end");
  }
  {
    Push push(options);
  }
  EXPECT_THAT(last_ones, testing::ElementsAre(1));
}

TEST(Push, TheEndOfOneIsSentWhileAnotherIsWaitedFor) {
  HttpReceiver receiver([](const HttpReceiver::Request&) { return HttpReceiver::Answer{}; });
  Push::Options options = OptionsFor(receiver);
  options.interval_ns = kNever;
  Push push(options);
  push.BeginFinish();
  EXPECT_EQ(receiver.Next().body(), "1") << "before Finish";
  push.BeginFinish();
  push.Finish();
  EXPECT_EQ(push.counts().accepted, 1) << "rendered once";
}

TEST(Push, RendersAgainAfterAnError) {
  HttpReceiver receiver([](const HttpReceiver::Request&) { return HttpReceiver::Answer{}; });
  Push::Options options = OptionsFor(receiver);
  options.render = [calls = 0](bool /*last*/) mutable -> Result<std::vector<Request>> {
    if (calls++ == 0) return Fail(ErrorCode::kIo, "the store is busy");
    return std::vector<Request>{{.body = "later", .items = 1}};
  };
  Push push(options);
  EXPECT_EQ(receiver.Next().body(), "later");
}

}  // namespace
}  // namespace gpusonde::otlp
