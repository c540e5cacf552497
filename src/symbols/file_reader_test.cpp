// SPDX-License-Identifier: Apache-2.0
#include "symbols/file_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <tuple>

#include "base/testing/message_sockets.h"
#include "base/time.h"

namespace gpusonde::symbols {
namespace {

using testing::HasSubstr;

constexpr int32_t kUser = 1000;
const std::vector<std::string> kSilent = {"/bin/sleep", "100"};

Result<FileReader::Files> OpenSomething() {
  ASSIGN_OR_RETURN(Fd file, Open("/proc/self/exe", O_RDONLY));
  return FileReader::Files{std::move(file), {}};
}

FileReader::Request About(uint64_t file, int32_t user_id = kUser) {
  return {.kind = FileRequestKind::kSymbols, .file = {1, file}, .user_id = user_id, .name = "/a/file"};
}

// The error that the answer is, when it comes.
std::string ErrorOf(FileReader& reader, const FileReader::Request& request) {
  for (int round = 0; round < 500; ++round) {
    if (auto answer = reader.Ask(request, OpenSomething); answer.has_value())
      return answer->bytes.has_value() ? "" : answer->bytes.error().message;
    reader.Wait(20);
    reader.Exchange();
  }
  return "no answer";
}

TEST(FileReader, AFileAtWhichTheServerDiesHasNoAnswer) {
  FileReader reader({.command = {"/bin/sleep", "0.1"}});
  EXPECT_THAT(ErrorOf(reader, About(1)), HasSubstr("the process that read /a/file died"));
  EXPECT_THAT(ErrorOf(reader, About(2)), HasSubstr("the process that read /a/file died"))
      << "it was started again";
}

TEST(FileReader, AServerThatEndedMeanwhileIsStartedAgain) {
  // Answers once, that all is well, and ends.
  FileReader reader({.command = {"/bin/sh", "-c", "head -c 1 <&3 >/dev/null; printf '\\0' >&3"}});
  EXPECT_EQ(ErrorOf(reader, About(1)), "");
  ::usleep(100'000);
  EXPECT_EQ(ErrorOf(reader, About(2)), "");
}

TEST(FileReader, AFileThatTakesTooLongHasNoAnswer) {
  FileReader reader({.command = kSilent, .deadline_ns = 50 * kNanosPerMilli});
  EXPECT_THAT(ErrorOf(reader, About(1)), HasSubstr("takes too long"));
}

TEST(FileReader, WithoutAServerNothingIsRead) {
  FileReader missing({.command = {"/nonexistent"}});
  EXPECT_THAT(ErrorOf(missing, About(1)), HasSubstr("start /nonexistent"));
  EXPECT_TRUE(missing.idle());
}

TEST(FileReader, WhyAFileCanNotBeOpenedIsAnAnswer) {
  FileReader reader({.command = kSilent});
  const auto answer =
      reader.Ask(About(1), []() -> Result<FileReader::Files> { return Fail(ErrorCode::kNotFound, "gone"); });
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->bytes.error().message, "gone");
}

TEST(FileReader, WaitsLittleForAUserHoweverManyFilesTheyHave) {
  FileReader reader({.command = kSilent});
  const int64_t begin_ns = MonotonicNow();
  for (uint64_t file = 0; file < 1000; ++file)
    ASSERT_FALSE(reader.Ask(About(file), OpenSomething).has_value());
  EXPECT_LT(MonotonicNow() - begin_ns, kNanosPerSecond);
}

TEST(FileReader, HoldsFewFilesOpenHoweverManyAreAskedAbout) {
  FileReader reader({.command = kSilent, .timeout_ns = 0});
  int opened = 0;
  const auto open = [&] { return ++opened, OpenSomething(); };
  for (uint64_t file = 0; file < 1000; ++file) reader.Ask(About(file), open);
  EXPECT_LT(opened, 50);
  const int of_user = opened;
  reader.Ask(About(1000, kUser + 1), open);
  EXPECT_EQ(opened, of_user + 1) << "another user's";
  for (int32_t user = 1; user < 1000; ++user)
    reader.Ask(About(2000 + static_cast<uint64_t>(user), user), open);
  EXPECT_LT(opened, 150);
}

TEST(FileReader, FilesOfTheSystemDoNotWaitForThoseOfStrangers) {
  // Of two servers one is busy; both die at once.
  FileReader reader({.command = {"/bin/sh", "-c", "sleep 0.3"}, .timeout_ns = 0});
  reader.Ask(About(1), OpenSomething);
  reader.Ask(About(2), OpenSomething);
  reader.Ask(About(3, 0), OpenSomething);
  while (reader.answered() < 2) {
    reader.Wait(20);
    reader.Exchange();
  }
  EXPECT_TRUE(reader.Ask(About(3, 0), OpenSomething).has_value());
  EXPECT_FALSE(reader.Ask(About(2), OpenSomething).has_value());
}

// Answers each request with 8 MiB.
const std::string kLargeAnswers = R"(
import os, socket
server = socket.socket(fileno=3)
while True:
    try:
        request, fds, _, _ = socket.recv_fds(server, 8192, 3)
    except ConnectionResetError:
        break
    if not request: break
    os.posix_fallocate(fds[1], 0, 8 << 20)
    for fd in fds: os.close(fd)
    server.send(bytes(1))
)";

TEST(FileReader, OfAnswersThatNobodyAsksForEachUserHasAFew) {
  FileReader reader(
      {.command = {"/usr/bin/env", "python3", "-c", kLargeAnswers}, .max_kept_bytes = int64_t{20} << 20});
  const auto ask = [&](uint64_t file, int32_t user_id) {
    FileReader::Request request = About(file, user_id);
    request.wait = false;
    return reader.Ask(request, OpenSomething).has_value();
  };
  EXPECT_FALSE(ask(1, kUser + 1));
  for (uint64_t file = 2; file <= 7; ++file) EXPECT_FALSE(ask(file, kUser));
  while (reader.answered() < 7) {
    reader.Wait(20);
    reader.Exchange();
  }
  EXPECT_TRUE(ask(1, kUser + 1)) << "the oldest";
  EXPECT_FALSE(ask(6, kUser));
  EXPECT_TRUE(ask(7, kUser));
}

class FileProtocolTest : public testing::Test {
 protected:
  void SetUp() override { std::tie(ours_, theirs_) = MessageSockets(); }
  static Fd Something() { return *Open("/proc/self/exe", O_RDONLY); }
  Fd ours_, theirs_;
};

TEST_F(FileProtocolTest, MessagesArriveAsTheyWereSent) {
  for (const bool with_debug_file : {false, true}) {
    const FileRequest request{.kind = FileRequestKind::kPython,
                              .name = "/a\tb",
                              .file = Something(),
                              .debug_file = with_debug_file ? Something() : Fd(),
                              .answer = Something()};
    ASSERT_TRUE(SendFileRequest(ours_.get(), request, Wait::kYes).has_value());
    const std::optional<FileRequest> received = ReceiveFileRequest(theirs_.get()).value();
    ASSERT_TRUE(received.has_value());
    EXPECT_EQ(received->kind, request.kind);
    EXPECT_EQ(received->name, request.name);
    EXPECT_TRUE(received->file.valid() && received->answer.valid());
    EXPECT_EQ(received->debug_file.valid(), with_debug_file);
  }
  EXPECT_FALSE(ReceiveFileAnswer(ours_.get()).value().has_value()) << "not yet";
  ASSERT_TRUE(SendFileAnswer(theirs_.get(), {}).has_value());
  EXPECT_FALSE(ReceiveFileAnswer(ours_.get()).value()->error.has_value());
  ASSERT_TRUE(SendFileAnswer(theirs_.get(), Fail(ErrorCode::kCorrupt, "no")).has_value());
  const std::optional<Error> error = ReceiveFileAnswer(ours_.get()).value()->error;
  EXPECT_EQ(error->code, ErrorCode::kCorrupt);
  EXPECT_EQ(error->message, "no");
  theirs_.Close();
  EXPECT_FALSE(ReceiveFileAnswer(ours_.get()).has_value());
}

TEST_F(FileProtocolTest, WhatDoesNotParseIsRefused) {
  for (const std::string text : {"\x7fx", "\x03/name", "\x20"}) {
    ASSERT_EQ(::send(ours_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::send(theirs_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    EXPECT_FALSE(ReceiveFileRequest(theirs_.get()).has_value());
    EXPECT_FALSE(ReceiveFileAnswer(ours_.get()).has_value() && text[0] != '\x03');
  }
}

}  // namespace
}  // namespace gpusonde::symbols
