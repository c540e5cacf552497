// SPDX-License-Identifier: Apache-2.0
#include "agent/uplink.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/samples.h"
#include "net/testing/http_receiver.h"
#include "spool/segment.h"
#include "spool/spool.h"
#include "spool/upload.h"

namespace gpusonde::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The number after `name=` in the request's address.
int64_t NumberIn(const net::HttpReceiver::Request& request, std::string_view name) {
  const std::string target(request.target());
  const size_t at = target.find(std::string(name) + "=");
  return at == std::string::npos ? -1 : std::strtoll(target.c_str() + at + name.size() + 1, nullptr, 10);
}

int64_t FramesIn(const net::HttpReceiver::Request& request) {
  return std::ssize(spool::DecodeUpload(request.body()).value());
}

// As `serve` answers that everything is stored.
net::HttpReceiver::Answer Stored(const net::HttpReceiver::Request& request) {
  return {.status = 200,
          .body = fmt::format(R"({{"committed":{},"repeat_names":0,"pause_ms":0}})",
                              NumberIn(request, "first") + FramesIn(request) - 1)};
}

net::HttpReceiver::Answer Refusal(unsigned status) {
  return {.status = status, .body = R"({"error":{"code":"corrupt","message":"not like this"}})"};
}

class UplinkTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomically(folder_ / "token", "0123456789abcdef\n").has_value());
  }

  Uplink::Options Options(uint16_t port) const {
    return {.server = {.host = "127.0.0.1", .port = std::to_string(port)},
            .token_file = folder_ / "token",
            .host = "node-1",
            .spool_folder = folder_ / "spool",
            .first_pause_ns = kNanosPerMilli,
            .max_pause_ns = 10 * kNanosPerMilli,
            .flush_ns = 30 * kNanosPerSecond};
  }
  // Writes this many frames of three rows each to the spool.
  std::vector<model::Batch> Fill(int frames) {
    std::vector<model::Batch> batches;
    for (int i = 0; i < frames; ++i) {
      model::BatchBuilder builder(model::kSamples);
      for (int row = 0; row < 3; ++row) builder.Append({.time_ns = row});
      batches.push_back(builder.Take());
    }
    EXPECT_EQ(spool_.Store(batches).lost_rows, 0);
    return batches;
  }
  // As a round does.
  void Write(Uplink& uplink, int frames, int64_t day = 20'000) {
    const int64_t first = spool_.last_sequence() + 1;
    std::vector<model::Batch> batches = Fill(frames);
    ASSERT_TRUE(uplink.Ingest(spool_.id(), day, first, std::move(batches)).has_value());
  }
  void Begin(Uplink& uplink) {
    ASSERT_EQ(uplink.IngestedThrough(spool_.id(), 19'999, spool_.last_sequence()).value(),
              spool_.last_sequence());
  }
  // Waits until the server has this frame.
  void AwaitCommitted(Uplink& uplink, int64_t frame) {
    const int64_t end_ns = MonotonicNow() + 30 * kNanosPerSecond;
    while (uplink.CommittedThrough(spool_.id()).value() < frame && MonotonicNow() < end_ns)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(uplink.CommittedThrough(spool_.id()).value(), frame);
  }

  TempFolder folder_;
  spool::Writer spool_ = spool::Writer::Open(folder_ / "spool").value();
};

TEST_F(UplinkTest, AsksWhatTheServerHasAndSendsTheRestWithTheToken) {
  net::HttpReceiver server([](const net::HttpReceiver::Request& request) -> net::HttpReceiver::Answer {
    if (request.body().empty())
      return {.status = 200, .body = R"({"committed":2,"repeat_names":0,"pause_ms":0})"};
    return Stored(request);
  });
  Fill(5);
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  AwaitCommitted(uplink, 5);
  const net::HttpReceiver::Request question = server.Next();
  EXPECT_EQ(question.body(), "");
  EXPECT_EQ(question["Authorization"], "Bearer 0123456789abcdef");
  const net::HttpReceiver::Request rest = server.Next();
  EXPECT_EQ(std::string(rest.target()),
            fmt::format("/api/v1/frames?host=node-1&spool={}&day=19999&first=3", spool_.id().ToHex()));
  EXPECT_EQ(FramesIn(rest), 3);
}

TEST_F(UplinkTest, FramesOfAnEarlierRunAreReadFromTheSpool) {
  {
    Uplink nowhere(Options(1));
    Begin(nowhere);
    Write(nowhere, 4);
    EXPECT_EQ(nowhere.CommittedThrough(spool_.id()).value(), 0);
  }
  net::HttpReceiver server(Stored);
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  AwaitCommitted(uplink, 4);
}

TEST_F(UplinkTest, WhatFollowsADamagedFrameIsGivenUpAndWhatIsWrittenAnewIsSent) {
  Fill(4);
  const std::string segment = folder_ / "spool/0000000000000000001.segment";
  // Of four frames of the same size the third: the last shows that it was whole once.
  const auto bytes = static_cast<std::streamoff>(std::filesystem::file_size(segment));
  constexpr std::streamoff kHeader = spool::kSegmentHeaderBytes;
  std::fstream(segment, std::ios::in | std::ios::out | std::ios::binary)
          .seekp(kHeader + (bytes - kHeader) * 5 / 8)
      << "damage";
  Fill(1);
  net::HttpReceiver server(Stored);
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  AwaitCommitted(uplink, 5);
  EXPECT_EQ(server.Next().body(), "");
  EXPECT_EQ(FramesIn(server.Next()), 2) << "those before it";
  const Sink::Loss loss = uplink.TakeLoss();
  EXPECT_TRUE(loss.spool);
  EXPECT_TRUE(loss.names);
  ASSERT_TRUE(spool_.SkipTo(5).has_value());
  Write(uplink, 2);
  AwaitCommitted(uplink, 7);
  EXPECT_EQ(FramesIn(server.Next()), 2);
}

TEST_F(UplinkTest, ARequestHasFramesOfOneDay) {
  net::HttpReceiver server(Stored);
  Uplink uplink(Options(server.port()));
  Fill(1);
  Begin(uplink);
  Write(uplink, 2, 20'000);
  Write(uplink, 2, 20'001);
  AwaitCommitted(uplink, 5);
  std::map<int64_t, int64_t> frames;  // by day
  while (frames[20'001] < 2) {
    const net::HttpReceiver::Request request = server.Next();
    frames[NumberIn(request, "day")] += FramesIn(request);
  }
  EXPECT_THAT(frames, ElementsAre(std::pair(19'999, 1), std::pair(20'000, 2), std::pair(20'001, 2)));
}

TEST_F(UplinkTest, WhateverAServerAnswersNothingIsLostBeforeItSaysStored) {
  std::atomic<int> answers = 0;
  net::HttpReceiver server([&](const net::HttpReceiver::Request& request) -> net::HttpReceiver::Answer {
    switch (answers++) {
      case 0:
        return Refusal(401);
      case 1:
        return Refusal(503);
      case 2:
        return {.status = 413, .body = "<html>a proxy's own</html>"};
      case 3:
        return {.status = 200, .body = "<html>log in</html>"};
      case 4:
        return {.status = 200, .body = R"({"committed":)"};
      default:
        return Stored(request);
    }
  });
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  Write(uplink, 3);
  AwaitCommitted(uplink, 3);
  const Sink::Loss loss = uplink.TakeLoss();
  EXPECT_EQ(loss.rows, 0);
  EXPECT_FALSE(loss.names);
}

TEST_F(UplinkTest, RowsOfADayThatTheServerExcludesWaitUntilThisMachinesClockExcludesItToo) {
  std::atomic<int> refused = 0;
  net::HttpReceiver server([&](const net::HttpReceiver::Request& request) {
    if (FramesIn(request) == 0 || NumberIn(request, "day") == 20'000) return Stored(request);
    ++refused;
    return Refusal(409);
  });
  std::atomic<int64_t> today = 1;
  Uplink::Options options = Options(server.port());
  options.epoch_now = [&] { return today * kNanosPerDay; };
  Uplink uplink(options);
  Begin(uplink);
  Write(uplink, 3, 1);  // before the machine has asked a time server
  while (refused < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(uplink.CommittedThrough(spool_.id()).value(), 0);
  EXPECT_EQ(uplink.TakeLoss().rows, 0);
  today = 20'000;
  Write(uplink, 2, 20'000);
  AwaitCommitted(uplink, 5);
  const Sink::Loss loss = uplink.TakeLoss();
  EXPECT_EQ(loss.rows, 9);
  EXPECT_TRUE(loss.names);
}

// No `serve` refuses a question, which has no rows of any day; to drop them would be to ask again at once.
TEST_F(UplinkTest, AQuestionThatIsRefusedForItsDayIsAskedAgainAfterAPause) {
  std::atomic<int> questions = 0;
  net::HttpReceiver server([&](const net::HttpReceiver::Request&) {
    ++questions;
    return Refusal(409);
  });
  Uplink::Options options = Options(server.port());
  options.first_pause_ns = options.max_pause_ns = 60 * kNanosPerSecond;
  options.epoch_now = [] { return int64_t{0}; };
  Uplink uplink(options);
  Begin(uplink);
  while (questions == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(questions, 1);
  EXPECT_FALSE(uplink.TakeLoss().names);
}

TEST_F(UplinkTest, AFrameThatTheServerRefusesIsDroppedAloneAndCounted) {
  net::HttpReceiver server([](const net::HttpReceiver::Request& request) {
    const int64_t first = NumberIn(request, "first");
    const bool has_the_third = first <= 3 && first + FramesIn(request) > 3;
    return has_the_third ? Refusal(400) : Stored(request);
  });
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  Write(uplink, 5);
  AwaitCommitted(uplink, 5);
  const Sink::Loss loss = uplink.TakeLoss();
  EXPECT_EQ(loss.rows, 3);
  EXPECT_TRUE(loss.names);
  EXPECT_EQ(uplink.TakeLoss().rows, 0) << "counted once";
}

TEST_F(UplinkTest, EachFrameOfARefusedRequestIsSentOnceMoreAndWithoutPauses) {
  constexpr int kFrames = 20;
  std::atomic<int> requests = 0;
  net::HttpReceiver server([&](const net::HttpReceiver::Request& request) -> net::HttpReceiver::Answer {
    const int64_t last = NumberIn(request, "first") + FramesIn(request) - 1;
    if (FramesIn(request) > 0) ++requests;
    if (FramesIn(request) > 0 && last == kFrames) return Refusal(400);
    return {.status = 200, .body = fmt::format(R"({{"committed":{},"pause_ms":60000}})", last)};
  });
  Fill(kFrames);
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  AwaitCommitted(uplink, kFrames);
  EXPECT_EQ(requests, 1 + kFrames);
  EXPECT_EQ(uplink.TakeLoss().rows, 3);
}

TEST_F(UplinkTest, AServerThatKnowsNothingGetsTheNamesAgain) {
  net::HttpReceiver server([](const net::HttpReceiver::Request& request) -> net::HttpReceiver::Answer {
    return {.status = 200,
            .body = fmt::format(R"({{"committed":{},"repeat_names":{},"pause_ms":0}})", FramesIn(request),
                                request.body().empty() ? 0 : 1)};
  });
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  Write(uplink, 2);
  AwaitCommitted(uplink, 2);
  const Sink::Loss loss = uplink.TakeLoss();
  EXPECT_TRUE(loss.names);
  EXPECT_EQ(loss.rows, 0);
}

TEST_F(UplinkTest, AServerThatHasMoreOfASpoolThanThereIsSaysWithWhichFrameToGoOn) {
  for (const auto& [committed, skip_to] : {std::pair(int64_t{7}, 7), std::pair(int64_t{1} << 62, 0)}) {
    net::HttpReceiver server([&](const net::HttpReceiver::Request& request) -> net::HttpReceiver::Answer {
      if (FramesIn(request) > 0) return Stored(request);
      return {.status = 200, .body = fmt::format(R"({{"committed":{},"pause_ms":0}})", committed)};
    });
    Fill(2);
    const int64_t last = spool_.last_sequence();
    Uplink uplink(Options(server.port()));
    Begin(uplink);
    AwaitCommitted(uplink, last);
    EXPECT_EQ(uplink.TakeLoss().skip_to, skip_to);
    EXPECT_EQ(uplink.TakeLoss().skip_to, 0) << "said once";
  }
}

TEST_F(UplinkTest, FramesAfterAGapInTheirNumbersAreSent) {
  net::HttpReceiver server(Stored);
  Uplink uplink(Options(server.port()));
  Fill(2);
  Begin(uplink);
  AwaitCommitted(uplink, 2);
  ASSERT_TRUE(spool_.SkipTo(100).has_value());
  Write(uplink, 3);
  AwaitCommitted(uplink, 103);
}

TEST_F(UplinkTest, AServerCannotAcknowledgeMoreThanItWasSent) {
  net::HttpReceiver server([](const net::HttpReceiver::Request&) -> net::HttpReceiver::Answer {
    return {.status = 200, .body = R"({"committed":1000000,"repeat_names":0,"pause_ms":0})"};
  });
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  Write(uplink, 2);
  AwaitCommitted(uplink, 2);
}

TEST_F(UplinkTest, AServerCannotAskForAPauseOfMoreOrLessThanItMay) {
  for (const auto& [pause_ms, waits] : {std::pair(INT64_MAX, true), std::pair(INT64_MIN, false)}) {
    net::HttpReceiver server([&](const net::HttpReceiver::Request& request) -> net::HttpReceiver::Answer {
      const int64_t committed = NumberIn(request, "first") + FramesIn(request) - 1;
      return {.status = 200, .body = fmt::format(R"({{"committed":{},"pause_ms":{}}})", committed, pause_ms)};
    });
    Uplink uplink(Options(server.port()));
    Begin(uplink);
    Write(uplink, 1);
    const int64_t first = spool_.last_sequence();
    AwaitCommitted(uplink, first);
    Write(uplink, 1);
    if (!waits) AwaitCommitted(uplink, first + 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(uplink.CommittedThrough(spool_.id()).value(), waits ? first : first + 1);
  }
}

TEST_F(UplinkTest, ALargeRequestHasMoreTime) {
  net::HttpReceiver server([](const net::HttpReceiver::Request& request) {
    if (FramesIn(request) > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    return Stored(request);
  });
  Uplink::Options options = Options(server.port());
  options.timeout_ns = kNanosPerSecond;
  std::mt19937_64 random(7);
  model::BatchBuilder builder(model::kSamples);
  for (int row = 0; row < 20'000; ++row) builder.Append({.time_ns = static_cast<int64_t>(random() >> 1)});
  const model::Batch large = builder.Take();
  ASSERT_EQ(spool_.Store({&large, 1}).lost_rows, 0);
  ASSERT_GT(spool::StoredBytes(folder_ / "spool").value(), 128 << 10);
  Uplink uplink(options);
  Begin(uplink);
  AwaitCommitted(uplink, 1);
}

TEST_F(UplinkTest, ATokenIsReadAgainForEachRequest) {
  net::HttpReceiver server([&](const net::HttpReceiver::Request& request) {
    return request["Authorization"] == "Bearer a-token-that-is-newer" ? Stored(request) : Refusal(401);
  });
  Uplink uplink(Options(server.port()));
  Begin(uplink);
  Write(uplink, 1);
  EXPECT_EQ(server.Next()["Authorization"], "Bearer 0123456789abcdef");
  ASSERT_TRUE(WriteFileAtomically(folder_ / "token", "a-token-that-is-newer\n").has_value());
  AwaitCommitted(uplink, 1);
}

TEST_F(UplinkTest, FlushSendsAtOnceAndDoesNotWaitForADeadServer) {
  uint16_t port = 0;
  {
    net::HttpReceiver server([](const net::HttpReceiver::Request& request) -> net::HttpReceiver::Answer {
      const int64_t committed = NumberIn(request, "first") + FramesIn(request) - 1;
      return {.status = 200, .body = fmt::format(R"({{"committed":{},"pause_ms":60000}})", committed)};
    });
    port = server.port();
    Uplink uplink(Options(port));
    Begin(uplink);
    Write(uplink, 1);
    AwaitCommitted(uplink, 1);
    Write(uplink, 1);  // waits for a minute
    ASSERT_TRUE(uplink.Flush().has_value());
    EXPECT_EQ(uplink.CommittedThrough(spool_.id()).value(), 2);
  }
  Uplink uplink(Options(port));
  Begin(uplink);
  const int64_t begin_ns = MonotonicNow();
  EXPECT_TRUE(uplink.Flush().has_value());
  EXPECT_LT(MonotonicNow() - begin_ns, 15 * kNanosPerSecond) << "flush_ns are 30 s";
  EXPECT_EQ(uplink.CommittedThrough(spool_.id()).value(), 0);
}

}  // namespace
}  // namespace gpusonde::agent
