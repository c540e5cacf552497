// SPDX-License-Identifier: Apache-2.0
#include "base/fd_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <tuple>

#include "base/testing/message_sockets.h"

namespace gpusonde {
namespace {

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class FdPassing : public testing::Test {
 protected:
  void SetUp() override { std::tie(ours_, theirs_) = MessageSockets(); }

  // As a hostile process may, with any number of descriptors.
  void SendFds(size_t count) {
    alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
    char byte = 'x';
    iovec part{.iov_base = &byte, .iov_len = 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; ++i) {
      const int fd = ours_.get();
      std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
    }
    ASSERT_EQ(::sendmsg(ours_.get(), &message, 0), 1);
  }

  Fd ours_, theirs_;
};

TEST_F(FdPassing, AMessageArrivesWithItsDescriptorsInOrder) {
  const Fd program = Open("/proc/self/exe", O_RDONLY).value();
  const Fd null = Open("/dev/null", O_RDONLY).value();
  ASSERT_TRUE(SendWithFds(ours_.get(), "two", {program.get(), null.get()}, Wait::kYes).has_value());
  ASSERT_TRUE(SendWithFds(ours_.get(), "none", {}, Wait::kNo).has_value());
  const Result<FdMessage> two = ReceiveWithFds(theirs_.get(), 100, Wait::kYes);
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->bytes, "two");
  ASSERT_EQ(two->fds.size(), 2u);
  struct stat first{}, second{};
  ASSERT_EQ(::fstat(two->fds[0].get(), &first), 0);
  ASSERT_EQ(::fstat(two->fds[1].get(), &second), 0);
  EXPECT_TRUE(S_ISREG(first.st_mode));
  EXPECT_TRUE(S_ISCHR(second.st_mode));
  EXPECT_EQ(::fcntl(two->fds[0].get(), F_GETFD), FD_CLOEXEC);
  const Result<FdMessage> none = ReceiveWithFds(theirs_.get(), 100, Wait::kNo);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->bytes, "none");
  EXPECT_TRUE(none->fds.empty());
}

TEST_F(FdPassing, WithoutAMessageItDoesNotWait) {
  EXPECT_EQ(ReceiveWithFds(theirs_.get(), 100, Wait::kNo).error().code, ErrorCode::kUnavailable);
}

TEST_F(FdPassing, AFullSocketIsNotWaitedFor) {
  Status sent;
  for (int i = 0; i < 100'000 && sent.has_value(); ++i) sent = SendWithFds(ours_.get(), "x", {}, Wait::kNo);
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, ErrorCode::kUnavailable);
}

TEST_F(FdPassing, TheEndIsAnEmptyMessage) {
  ours_.Close();
  const Result<FdMessage> end = ReceiveWithFds(theirs_.get(), 100, Wait::kYes);
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->bytes.empty());
}

TEST_F(FdPassing, ALongerMessageIsRefusedAndTheNextOneRead) {
  ASSERT_TRUE(SendWithFds(ours_.get(), "12345", {}, Wait::kYes).has_value());
  ASSERT_TRUE(SendWithFds(ours_.get(), "1234", {}, Wait::kYes).has_value());
  EXPECT_EQ(ReceiveWithFds(theirs_.get(), 4, Wait::kYes).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ReceiveWithFds(theirs_.get(), 4, Wait::kYes)->bytes, "1234");
}

// The kernel hands over one more than fits, by the padding of the buffer.
TEST_F(FdPassing, NoDescriptorIsLeftOpenHoweverManyArrive) {
  for (size_t count = 1; count <= 2 * kMaxPassedFds; ++count) {
    SendFds(count);
    const size_t before = OpenDescriptors();
    EXPECT_EQ(ReceiveWithFds(theirs_.get(), 100, Wait::kYes).has_value(), count <= kMaxPassedFds) << count;
    EXPECT_EQ(OpenDescriptors(), before) << count;
  }
}

}  // namespace
}  // namespace gpusonde
