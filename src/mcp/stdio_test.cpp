// SPDX-License-Identifier: Apache-2.0
#include "mcp/stdio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "mcp/source.h"

namespace gpusonde::mcp {
namespace {

using nlohmann::json;

// Answers nothing until it is interrupted.
class StuckSource final : public Source {
 public:
  Result<std::string> Get(const std::string&) override {
    ++calls;
    while (!interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Fail(ErrorCode::kUnavailable, "interrupted");
  }
  void Interrupt() override { interrupted = true; }
  void Resume() override { interrupted = false; }

  std::atomic<int> calls = 0;
  std::atomic<bool> interrupted = false;
};

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    from = Fd(ends[0]);
    to = Fd(ends[1]);
  }
  void Write(std::string_view text) const {
    EXPECT_TRUE(WriteAll(to.get(), std::as_bytes(std::span(text))).has_value());
  }
  Fd from;
  Fd to;
};

// A session over pipes.
class McpStdio : public testing::Test {
 protected:
  McpStdio() : thread_([this] { served_ = ServeStdio(server_, in_.from.get(), out_.to.get()); }) {}
  ~McpStdio() override {
    if (thread_.joinable()) End();
  }

  void Send(std::string_view message) const { in_.Write(std::string(message) + "\n"); }

  // The next response.
  json Receive() {
    while (!received_.contains('\n')) {
      std::array<char, 4096> chunk{};
      const ssize_t count = ::read(out_.from.get(), chunk.data(), chunk.size());
      if (count <= 0) return {};
      received_.append(chunk.data(), static_cast<size_t>(count));
    }
    const size_t end = received_.find('\n');
    const json response = json::parse(received_.substr(0, end));
    received_.erase(0, end + 1);
    return response;
  }

  // Closes the input and waits; whether nothing more came.
  bool End() {
    in_.to.Close();
    thread_.join();
    EXPECT_TRUE(served_.has_value());
    out_.to.Close();
    return Receive().is_null();
  }

  void WaitForCalls(int calls) const {
    while (source_.calls < calls) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  StuckSource source_;
  Server server_{source_};
  Pipe in_, out_;
  std::string received_;
  Status served_;
  std::thread thread_;
};

constexpr const char* kPing = R"({"jsonrpc":"2.0","id":"ping","method":"ping"})";

std::string CallWithId(int id) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
         R"(,"method":"tools/call","params":{"name":"overview"}})";
}
std::string CancellationOf(int id) {
  return R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
         std::to_string(id) + "}}";
}

TEST_F(McpStdio, AHugeLineIsRefusedAndTheNextAnswered) {
  Send(std::string(3 * kMaxMessageBytes, 'x'));
  EXPECT_EQ(Receive()["error"]["code"], -32600);
  Send("\r");
  Send("no JSON");
  EXPECT_EQ(Receive()["error"]["code"], -32700);
  in_.Write(kPing);  // the last line may lack its end
  in_.to.Close();
  EXPECT_EQ(Receive(), (json{{"jsonrpc", "2.0"}, {"id", "ping"}, {"result", json::object()}}));
}

TEST_F(McpStdio, ACancelledCallStopsWithoutResponseWhileOthersAreAnswered) {
  Send(CallWithId(1));
  Send(CallWithId(2));
  WaitForCalls(1);
  Send(kPing);
  EXPECT_EQ(Receive()["id"], "ping") << "though a call runs";
  Send(CancellationOf(2));  // waits
  Send(CancellationOf(99));
  Send(CancellationOf(1));  // runs
  Send(CallWithId(3));
  WaitForCalls(2);
  Send(CancellationOf(3));
  EXPECT_TRUE(End()) << "no response to any of the three";
  EXPECT_EQ(source_.calls, 2) << "the call that waited never ran";
}

TEST_F(McpStdio, TooManyWaitingCallsAreRefused) {
  for (int id = 0; id <= static_cast<int>(kMaxQueuedCalls) + 1; ++id) {
    Send(CallWithId(id));
    if (id == 0) WaitForCalls(1);
  }
  const json refused = Receive();
  EXPECT_EQ(refused["id"], kMaxQueuedCalls + 1);
  EXPECT_EQ(refused["error"]["code"], -32600);
  for (int id = static_cast<int>(kMaxQueuedCalls); id >= 0; --id) Send(CancellationOf(id));
  EXPECT_TRUE(End());
}

}  // namespace
}  // namespace gpusonde::mcp
