// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/disk.h"

namespace gpusonde {
namespace {

class FdTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "gpusonde_fd_test_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(FdTest, AtomicWriteReplacesTheWholeFileAndLeavesNoTemporary) {
  const std::string path = folder_ + "/file";
  ASSERT_TRUE(WriteFileAtomically(path, "a longer first version").has_value());
  ASSERT_TRUE(WriteFileAtomically(path, "second").has_value());
  EXPECT_EQ(ReadFile(path).value(), "second");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_F(FdTest, AtomicWriteDoesNotReplaceAFileThatIsNotRegular) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(WriteFileAtomically(path, "content").has_value());
  std::array<char, 16> read{};
  EXPECT_EQ(::read(reader.get(), read.data(), read.size()), 7);
  EXPECT_STREQ(read.data(), "content");
  EXPECT_FALSE(CheckReplaceable(path).has_value());
  EXPECT_TRUE(CheckReplaceable(folder_ + "/nothing").has_value());
}

TEST_F(FdTest, AtomicWriteDoesNotReplaceALinkToAnOpenFile) {
  const std::string path = folder_ + "/file", link = folder_ + "/stdout";
  ASSERT_TRUE(WriteFileAtomically(path, "first, ").has_value());
  const Fd open = *Open(path, O_WRONLY);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(open.get()), link);
  EXPECT_FALSE(CheckReplaceable(link).has_value());
  EXPECT_TRUE(CheckReplaceable(path).has_value());
  ASSERT_TRUE(WriteFileAtomically(link, "second").has_value());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(ReadFile(path).value(), "first, second");
}

TEST_F(FdTest, AFailedAtomicWriteLeavesNoTemporaryEither) {
  const std::string path = folder_ + "/occupied";
  std::filesystem::create_directories(path + "/by_a_folder");
  EXPECT_FALSE(WriteFileAtomically(path, "content").has_value());
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_F(FdTest, AFailedAtomicWriteNamesTheTargetFile) {
  const Error error = WriteFileAtomically(folder_ + "/absent/file", "content").error();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.message, folder_ + "/absent/file: there is no folder " + folder_ +
                               "/absent; make it, or choose another output");
  const Error of_folder = WriteFileAtomically(folder_ + "", "content").error();
  EXPECT_EQ(of_folder.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(of_folder.message, folder_ + " is a folder; give the name of a file");
  const Error full = WriteFileAtomically("/dev/full", "content").error();
  EXPECT_EQ(full.code, ErrorCode::kOutOfSpace);
  EXPECT_EQ(full.message, "/dev/full: write: No space left on device");
}

TEST_F(FdTest, OutputsInADeletedWorkingFolderAreRefused) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::string gone = folder_ + "/gone";
  std::filesystem::create_directory(gone);
  std::filesystem::current_path(gone);
  const Status there = CheckFolderOf("run.sonde");
  std::filesystem::remove(gone);
  const Status deleted = CheckFolderOf("run.sonde"), atomic = WriteFileAtomically("run.sonde", "content");
  std::filesystem::current_path(before);
  EXPECT_TRUE(there.has_value());
  ASSERT_FALSE(deleted.has_value());
  EXPECT_EQ(deleted.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(deleted.error().message,
              testing::StartsWith("run.sonde: the folder in which this command runs was deleted"));
  ASSERT_FALSE(atomic.has_value());
  EXPECT_EQ(atomic.error().message, deleted.error().message);
}

TEST(FolderOf, IsWhereAPathLeads) {
  EXPECT_EQ(FolderOf("run.sonde"), ".");
  EXPECT_EQ(FolderOf("/run.sonde"), "/");
  EXPECT_EQ(FolderOf("runs/run.sonde"), "runs");
}

TEST_F(FdTest, AnOutputBelowAFileIsRefused) {
  const std::string path = folder_ + "/file";
  ASSERT_TRUE(WriteFileAtomically(path, "content").has_value());
  const Error error = CheckFolderOf(path + "/output").error();
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, path + "/output: " + path + " is not a folder; choose another output");
}

TEST_F(FdTest, ReadFileRejectsMoreThanItsLimit) {
  const std::string path = folder_ + "/file";
  ASSERT_TRUE(WriteFileAtomically(path, "0123456789").has_value());
  EXPECT_EQ(ReadFile(path, 10).value().size(), 10u);
  EXPECT_EQ(ReadFile(path, 9).error().code, ErrorCode::kUnsupported);
}

TEST_F(FdTest, APartIsReadUpToTheEndOfTheFile) {
  const std::string path = folder_ + "/file";
  ASSERT_TRUE(WriteFileAtomically(path, "0123456789").has_value());
  const Fd file = *Open(path, O_RDONLY);
  std::array<char, 4> part{};
  const auto into = std::as_writable_bytes(std::span(part));
  EXPECT_EQ(ReadAt(file.get(), 3, into, path), size_t{4});
  EXPECT_EQ(std::string_view(part.data(), 4), "3456");
  EXPECT_EQ(ReadAt(file.get(), 8, into, path), size_t{2});
  EXPECT_EQ(std::string_view(part.data(), 4), "8956");
  EXPECT_EQ(ReadAt(file.get(), 10, into, path), size_t{0});
  const Fd folder = *Open(folder_, O_RDONLY);
  EXPECT_EQ(ReadAt(folder.get(), 0, into, folder_).error().message, "read " + folder_ + ": Is a directory");
}

TEST_F(FdTest, ReadsProcFilesWhoseSizeIsReportedAsZero) {
  EXPECT_FALSE(ReadFile("/proc/self/maps").value().empty());
}

TEST_F(FdTest, TheErrorOfAMissingFileNamesIt) {
  const Error error = ReadFile(folder_ + "/absent").error();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_NE(error.message.find("absent"), std::string::npos);
}

TEST_F(FdTest, MovingAnFdLeavesTheSourceInvalid) {
  Fd first = Open("/dev/null", O_RDONLY).value();
  const int number = first.get();
  Fd second = std::move(first);
  EXPECT_EQ(second.get(), number);
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): that is what is tested
}

TEST_F(FdTest, AFolderIsLockedUntilItIsReleased) {
  const std::string path = folder_ + "/state";
  auto first = LockFolder(path);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
  const auto second = LockFolder(path);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, testing::HasSubstr("process " + std::to_string(::getpid())));
  first->Close();
  EXPECT_TRUE(LockFolder(path).has_value());
}

// A lock on a folder that a process has left to its child when it ended, as a recorder that is killed while
// it starts its program does.
class LeftLock {
 public:
  explicit LeftLock(const std::string& path) {
    std::array<int, 2> locked{};
    EXPECT_EQ(::pipe(locked.data()), 0);
    EXPECT_EQ(::pipe(release_.data()), 0);
    killed_ = ::fork();
    if (killed_ == 0) {
      const auto lock = LockFolder(path);
      const pid_t child = ::fork();
      if (child == 0) {
        ::close(release_[1]);
        useconds_t after_us = 0;
        (void)!::read(release_[0], &after_us, sizeof after_us);
        ::usleep(after_us);
        ::_exit(0);
      }
      (void)!::write(locked[1], "", 1);
      ::_exit(lock.has_value() && child > 0 ? 0 : 1);
    }
    char ready = 0;
    EXPECT_EQ(::read(locked[0], &ready, 1), 1);
    for (const int end : locked) ::close(end);
    siginfo_t ended{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(killed_), &ended, WEXITED | WNOWAIT), 0);  // a zombie
  }
  ~LeftLock() {
    for (const int end : release_) ::close(end);
    int status = 0;
    EXPECT_EQ(::waitpid(killed_, &status, 0), killed_);
    EXPECT_EQ(status, 0);
  }
  LeftLock(const LeftLock&) = delete;
  LeftLock& operator=(const LeftLock&) = delete;

  void ReleaseAfter(useconds_t after_us) {
    EXPECT_EQ(::write(release_[1], &after_us, sizeof after_us), ssize_t{sizeof after_us});
  }

 private:
  std::array<int, 2> release_{};
  pid_t killed_ = 0;
};

TEST_F(FdTest, ALockLeftToAChildByAKilledProcessIsWaitedFor) {
  const std::string path = folder_ + "/state";
  LeftLock left(path);
  const Fd folder = Open(path, O_RDONLY | O_DIRECTORY).value();
  EXPECT_NE(::flock(folder.get(), LOCK_EX | LOCK_NB), 0);
  left.ReleaseAfter(300'000);
  const auto lock = LockFolder(path);
  EXPECT_TRUE(lock.has_value()) << lock.error().message;
}

// Also between a look at the lock and one at who has it.
TEST_F(FdTest, ALockThatIsReleasedWhileItIsWaitedForIsTaken) {
  const std::string path = folder_ + "/state";
  for (useconds_t after_us = 10'000; after_us < 30'000; after_us += 200) {
    LeftLock left(path);
    left.ReleaseAfter(after_us);
    const auto lock = LockFolder(path);
    EXPECT_TRUE(lock.has_value()) << lock.error().message;
  }
}

}  // namespace
}  // namespace gpusonde
