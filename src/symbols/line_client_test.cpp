// SPDX-License-Identifier: Apache-2.0
#include "symbols/line_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <tuple>

#include "base/fd_passing.h"
#include "base/testing/message_sockets.h"
#include "base/testing/temp_folder.h"
#include "symbols/line_cache.h"
#include "symbols/line_server.h"
#include "symbols/server_process.h"

namespace gpusonde::symbols {
namespace {

constexpr Id128 kFile{1, 1}, kOtherFile{2, 2};

std::vector<LineClient::Answer> ExchangeUntilIdle(LineClient& client) {
  std::vector<LineClient::Answer> answers;
  for (int round = 0; round < 500 && !client.idle(); ++round) {
    client.Exchange([&](const LineClient::Answer& answer) { answers.push_back(answer); });
    if (!client.idle()) client.Wait(20);
  }
  return answers;
}

Result<Fd> OpenSelf() { return Open("/proc/self/exe", O_RDONLY); }

TEST(LineClient, AFileAtWhichTheServerDiesIsNotAskedAboutAgain) {
  LineClient client({.command = {"/bin/false"}});
  EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/x", 1, OpenSelf));
  const std::vector<LineClient::Answer> answers = ExchangeUntilIdle(client);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].kind, LineAnswer::Kind::kUnreadable);
  EXPECT_FALSE(client.Ask(kFile, ::getpid(), "/x", 2, OpenSelf));
  EXPECT_TRUE(client.Ask(kOtherFile, ::getpid(), "/y", 2, OpenSelf)) << "others still are";
}

TEST(LineClient, AServerThatStaysSilentIsGivenUp) {
  LineClient client({.command = {"/bin/sleep", "100"}, .timeout_ns = 50 * kNanosPerMilli});
  EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/x", 1, OpenSelf));
  const std::vector<LineClient::Answer> answers = ExchangeUntilIdle(client);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].kind, LineAnswer::Kind::kUnreadable);
}

TEST(LineClient, SignalsThatEndTheAgentLeaveTheServer) {
  const TempFolder folder;
  const std::string script = "kill -INT $$; kill -HUP $$; kill -TERM $$; : > '" + folder / "lives" + "'";
  LineClient client({.command = {"/bin/sh", "-c", script}});
  EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/x", 1, OpenSelf));
  EXPECT_EQ(ExchangeUntilIdle(client).size(), 1u) << "it ended without an answer";
  EXPECT_TRUE(std::filesystem::exists(folder / "lives"));
}

TEST(LineClient, TheServerInheritsNoOtherDescriptors) {
  const TempFolder folder;
  // Without close-on-exec, like the sockets of Boost.Asio.
  const Fd inheritable(::fcntl(STDERR_FILENO, F_DUPFD, kServerFd + 1));
  LineClient client({.command = {"/bin/sh", "-c",
                                 fmt::format("test -e /proc/$$/fd/{} && ! test -e /proc/$$/fd/{} && : > '{}'",
                                             kServerFd, inheritable.get(), folder / "closed")}});
  EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/x", 1, OpenSelf));
  EXPECT_EQ(ExchangeUntilIdle(client).size(), 1u) << "it ended without an answer";
  EXPECT_TRUE(std::filesystem::exists(folder / "closed"));
}

// A server that answers every request with no frames.
const std::string kAnsweringServer = R"(
import socket
server = socket.socket(fileno=3)
while request := server.recv(65536).decode():
    file, *offsets = request.replace("\n", "\t").split("\t")
    for offset in filter(None, offsets[2:]):
        server.send(f"{file}\t0\t{offset}\n".encode())
)";

TEST(LineClient, AfterAPauseFewQuestionsWaitForMore) {
  LineClient client({.command = {"/usr/bin/env", "python3", "-c", kAnsweringServer},
                     .idle_ns = 0,
                     .pause_ns = 3600 * kNanosPerSecond});
  uint64_t offset = 0;
  const auto ask = [&] { return client.Ask(kFile, ::getpid(), "/proc/self/exe", ++offset, OpenSelf); };
  const auto exchange = [&](int rounds = 500) {
    size_t answers = 0;
    for (int round = 0; round < rounds && !client.idle(); ++round) {
      client.Exchange([&](const LineClient::Answer&) { ++answers; });
      ::usleep(20'000);
    }
    return answers;
  };
  ASSERT_TRUE(ask());
  EXPECT_EQ(exchange(), 1u) << "the first is sent at once";
  client.Exchange([](const LineClient::Answer&) {});  // ends the server
  ASSERT_TRUE(ask());
  EXPECT_EQ(exchange(5), 0u);
  EXPECT_EQ(client.waiting(), 1u);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ask());
  EXPECT_EQ(exchange(), 21u) << "many are sent";
  client.Exchange([](const LineClient::Answer&) {});
  ASSERT_TRUE(ask());
  client.Wait(0);
  EXPECT_EQ(exchange(), 1u) << "nobody is kept waiting for them";
}

// A server that takes CPU time for every answer.
const std::string kSlowServer = R"(
import socket, time
server = socket.socket(fileno=3)
while request := server.recv(65536).decode():
    begin = time.process_time()
    while time.process_time() - begin < 0.02: pass
    file, pid, path, offset = request.replace("\n", "\t").split("\t")[:4]
    server.send(f"{file}\t0\t{offset}\n".encode())
)";

TEST(LineClient, QuestionsWaitOnceTheServerHasTakenItsCpuTime) {
  for (const double share : {1e-9, 1e9}) {
    LineClient client({.command = {"/usr/bin/env", "python3", "-c", kSlowServer},
                       .cpu_share = share,
                       .burst_ns = 10 * kNanosPerMilli});
    uint64_t offset = 0;
    const auto answers = [&](int rounds) {
      EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/proc/self/exe", ++offset, OpenSelf));
      size_t count = 0;
      for (int round = 0; round < rounds && !client.idle(); ++round) {
        client.Exchange([&](const LineClient::Answer&) { ++count; });
        ::usleep(20'000);
      }
      return count;
    };
    EXPECT_EQ(answers(3'000), 1u) << "the first is sent at once";
    if (share > 1) {
      EXPECT_EQ(answers(3'000), 1u) << "what it took has been regained";
      continue;
    }
    EXPECT_EQ(answers(5), 0u);
    EXPECT_EQ(client.waiting(), 1u);
    EXPECT_EQ(ExchangeUntilIdle(client).size(), 1u) << "who waits for them gets them";
  }
}

TEST(LineClient, WithoutAServerNothingIsAsked) {
  LineClient client({.command = {}});
  EXPECT_FALSE(client.Ask(kFile, ::getpid(), "/x", 1, OpenSelf));
  EXPECT_TRUE(client.idle());
  LineClient missing({.command = {"/nonexistent"}});
  EXPECT_TRUE(missing.Ask(kFile, ::getpid(), "/x", 1, OpenSelf));
  EXPECT_TRUE(ExchangeUntilIdle(missing).empty());
  EXPECT_TRUE(missing.idle());
}

TEST(LineClient, HoldsFewFilesOpenHoweverManyAreAskedAbout) {
  const auto open_descriptors = [] {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  const size_t before = open_descriptors();
  LineClient client({.command = {"/bin/sleep", "100"}});
  int refused = 0;
  for (uint64_t file = 1; file <= 1000; ++file)
    if (!client.Ask({3, file}, ::getpid(), "/x", 1, OpenSelf)) ++refused;
  EXPECT_EQ(refused, 1000 - static_cast<int>(LineClient::kMaxOpenFiles));
  EXPECT_LE(open_descriptors(), before + LineClient::kMaxOpenFiles);
}

TEST(LineClient, WhatTheCacheKnowsIsAnsweredWithoutTheServer) {
  const TempFolder folder;
  const std::vector<SourceFrame> frames = {{"f", "x.cpp", 3, 1}};
  LineCache(folder.path()).Add(kFile, {{1, frames}});
  LineClient client({.command = {"/bin/false"}, .cache_folder = folder.path()});
  EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/x", 1, OpenSelf));
  EXPECT_EQ(client.waiting(), 1u);
  std::vector<LineClient::Answer> answers = ExchangeUntilIdle(client);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].frames, frames);
  EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/x", 2, OpenSelf)) << "the server died of nothing yet";
  answers = ExchangeUntilIdle(client);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].kind, LineAnswer::Kind::kUnreadable);
  EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/x", 1, OpenSelf)) << "it still knows";
}

// The server's own loop, in a thread.
class LineServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::tie(ours_, theirs_) = MessageSockets();
    for (const int end : {ours_.get(), theirs_.get()}) {
      const timeval patience{.tv_sec = 60, .tv_usec = 0};
      ::setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
  }
  Fd ours_, theirs_;
};

TEST_F(LineServerTest, MessagesArriveAsTheyWereSent) {
  const LineRequest request{.file = 7,
                            .pid = 8,
                            .path = "/a\tb",
                            .offsets = {1, ~uint64_t{0}},
                            .fd = Open("/proc/self/exe", O_RDONLY).value()};
  ASSERT_TRUE(SendRequest(ours_.get(), request, Wait::kYes).has_value());
  const std::optional<LineRequest> received = ReceiveRequest(theirs_.get()).value();
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->path, "/a b");
  EXPECT_EQ(received->offsets, request.offsets);
  EXPECT_TRUE(received->fd.valid());

  const LineAnswer answer{.file = 7, .offset = 9, .frames = {{"f", "x.cpp", 3, 1}, {"", "", 0, 0}}};
  ASSERT_TRUE(SendAnswer(theirs_.get(), answer).has_value());
  const std::optional<LineAnswer> back = ReceiveAnswer(ours_.get(), Wait::kYes).value();
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->frames, answer.frames);
  theirs_.Close();
  EXPECT_FALSE(ReceiveAnswer(ours_.get(), Wait::kYes).value().has_value());
}

TEST_F(LineServerTest, AClientThatEndsBeforeItsAnswersIsNoError) {
  const LineRequest request{.file = 1,
                            .pid = ::getpid(),
                            .path = "/bin/sh",
                            .offsets = {1},
                            .fd = Open("/bin/sh", O_RDONLY).value()};
  ASSERT_TRUE(SendRequest(ours_.get(), request, Wait::kYes).has_value());
  ours_.Close();
  const pid_t server = ::fork();  // it limits its own process
  ASSERT_GE(server, 0);
  if (server == 0) ::_exit(ServeLines(theirs_.get()).has_value() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(server, &status, 0), server);
  EXPECT_EQ(status, 0);
}

TEST_F(LineServerTest, WhatDoesNotParseIsRefused) {
  for (const std::string text : {"x", "1\t2\n", "1\t2\t/path\n3", "1\t9\t0\n", "1\t0\t0\n1\t2\tfile\n"}) {
    ASSERT_EQ(::send(ours_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::send(theirs_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    EXPECT_FALSE(ReceiveRequest(theirs_.get()).has_value()) << text;
    EXPECT_FALSE(ReceiveAnswer(ours_.get(), Wait::kYes).has_value()) << text;
  }
}

// A reader that a hostile file has taken over may send descriptors with its answers.
TEST_F(LineServerTest, DescriptorsThatComeWithAnAnswerAreClosed) {
  const auto open_descriptors = [] {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  const size_t before = open_descriptors();
  const int fd = theirs_.get();
  ASSERT_TRUE(SendWithFds(theirs_.get(), "1\t0\t9\n", {fd, fd}, Wait::kYes).has_value());
  EXPECT_TRUE(ReceiveAnswer(ours_.get(), Wait::kYes).has_value());
  EXPECT_EQ(open_descriptors(), before);
}

TEST(LineClient, ManyFilesAreForgottenButForThoseThatAreAskedAbout) {
  LineClient client({.command = {"/bin/sleep", "100"}});
  EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/asked", 1, OpenSelf));
  client.Exchange([](const LineClient::Answer&) {});
  EXPECT_TRUE(client.Ask(kOtherFile, ::getpid(), "/waits", 1, OpenSelf));
  const auto gone = [] { return Result<Fd>(Fail(ErrorCode::kNotFound, "gone")); };
  for (uint64_t file = 0; file < 3 * LineClient::kMaxFiles; ++file) {
    EXPECT_FALSE(client.Ask({7, file}, ::getpid(), "/gone", 1, gone));
    ASSERT_LE(client.files(), LineClient::kMaxFiles);
  }
  EXPECT_EQ(client.waiting(), 2u);
  EXPECT_TRUE(client.Ask(kOtherFile, ::getpid(), "/waits", 2, gone)) << "it is still open";
}

// A server that answers with the number of the file as the name of the function.
const std::string kNumberingServer = R"(
import socket
server = socket.socket(fileno=3)
while request := server.recv(65536).decode():
    file, *offsets = request.replace("\n", "\t").split("\t")
    for offset in filter(None, offsets[2:]):
        server.send(f"{file}\t0\t{offset}\n1\t1\tx.cpp\tfile{file}\n".encode())
)";

TEST(LineClient, AForgottenFileIsAskedAboutByAnotherNumber) {
  LineClient client({.command = {"/usr/bin/env", "python3", "-c", kNumberingServer}});
  const auto name = [&] {
    EXPECT_TRUE(client.Ask(kFile, ::getpid(), "/x", 1, OpenSelf));
    const std::vector<LineClient::Answer> answers = ExchangeUntilIdle(client);
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() || answers[0].frames.empty() ? "" : answers[0].frames[0].function;
  };
  EXPECT_EQ(name(), "file0");
  EXPECT_EQ(name(), "file0");
  for (uint64_t file = 0; file < LineClient::kMaxFiles; ++file)
    client.Ask({7, file}, ::getpid(), "/gone", 1,
               [] { return Result<Fd>(Fail(ErrorCode::kNotFound, "gone")); });
  EXPECT_EQ(name(), "file" + std::to_string(LineClient::kMaxFiles + 1));
}

TEST(LineClient, HoldsFewFilesLinesInMemory) {
  const TempFolder folder;
  const LineCache cache(folder / "lines");
  LineCache::Found found;
  for (uint64_t offset = 0; offset < 1000; ++offset)
    found.emplace_back(offset, std::vector{SourceFrame{.function = std::string(1000, 'f'), .file = {}}});
  constexpr uint64_t kFiles = LineClient::kMaxLoadedBytes / 1'000'000 + 4;
  for (uint64_t file = 0; file < kFiles; ++file) cache.Add({7, file}, found);
  LineClient client({.command = {"/bin/sleep", "100"}, .cache_folder = folder / "lines"});
  const auto ask = [&](uint64_t file) {
    return client.Ask({7, file}, ::getpid(), "/gone", 1,
                      [] { return Result<Fd>(Fail(ErrorCode::kNotFound, "gone")); });
  };
  EXPECT_TRUE(ask(0));
  EXPECT_GT(client.loaded_bytes(), 1'000'000U);
  for (uint64_t file = 1; file < kFiles; ++file) {
    EXPECT_TRUE(ask(file)) << "the cache knows it";
    ASSERT_LE(client.loaded_bytes(), LineClient::kMaxLoadedBytes);
  }
}

}  // namespace
}  // namespace gpusonde::symbols
