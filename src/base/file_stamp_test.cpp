// SPDX-License-Identifier: Apache-2.0
#include "base/file_stamp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/time.h"

namespace gpusonde {
namespace {

class FileStampTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }

  const std::string path_ = testing::TempDir() + "gpusonde-file-stamp-" + std::to_string(::getpid());
};

TEST_F(FileStampTest, AFileThatIsReplacedRewrittenOrRemovedHasAnotherStamp) {
  Write("a");
  const FileStamp first = StampOf(path_);
  EXPECT_EQ(StampOf(path_), first);
  Write("longer");
  const FileStamp second = StampOf(path_);
  EXPECT_NE(second, first);
  std::ofstream(path_ + ".new") << "longer";
  std::filesystem::rename(path_ + ".new", path_);
  const FileStamp third = StampOf(path_);
  EXPECT_NE(third.inode, second.inode);
  std::filesystem::remove(path_);
  EXPECT_EQ(StampOf(path_), FileStamp{});
}

TEST_F(FileStampTest, WatchedFilesChangeWhenAnyOfThemDoes) {
  Write("a");
  WatchedFiles files({path_, path_ + ".absent"});
  EXPECT_EQ(files.Check(), WatchedFiles::State::kChanged) << "not read yet";
  files.MarkRead();
  EXPECT_EQ(files.Check(), WatchedFiles::State::kUnsettled) << "written just now";
  Write("longer");
  EXPECT_EQ(files.Check(), WatchedFiles::State::kChanged);
  const timespec before[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), before, 0), 0);
  files.MarkRead();
  EXPECT_EQ(files.Check(), WatchedFiles::State::kUnsettled) << "the inode's time can't be set back";
}

TEST_F(FileStampTest, AFileThatChangedJustNowMayChangeUnseen) {
  Write("a");
  const FileStamp stamp = StampOf(path_);
  EXPECT_TRUE(MayChangeUnseen(stamp, EpochNow()));
  EXPECT_FALSE(MayChangeUnseen(stamp, EpochNow() + 2 * kNanosPerSecond));
}

}  // namespace
}  // namespace gpusonde
