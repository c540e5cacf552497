// SPDX-License-Identifier: Apache-2.0
#include "base/file_stamp.h"

#include <gtest/gtest.h>
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

TEST_F(FileStampTest, AFileThatChangedJustNowMayChangeUnseen) {
  Write("a");
  const FileStamp stamp = StampOf(path_);
  EXPECT_TRUE(MayChangeUnseen(stamp, EpochNow()));
  EXPECT_FALSE(MayChangeUnseen(stamp, EpochNow() + 2 * kNanosPerSecond));
}

}  // namespace
}  // namespace gpusonde
