// SPDX-License-Identifier: Apache-2.0
#include "server/source_folders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/testing/temp_folder.h"

namespace gpusonde::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SourceFoldersTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "code/sub");
    Write("code/train.py", "import torch\n");
    Write("code/sub/data.py", "caf\xE9\n");
    Write("code/.env", "TOKEN=1\n");
    Write("secret.txt", "secret\n");
  }
  void Write(const std::string& name, const std::string& text) { std::ofstream(root_ / name) << text; }
  std::string At(const std::string& name) const { return (root_ / name).string(); }
  Result<SourceText> Read(const std::string& path) { return SourceFolders::Open({At("code")})->Read(path); }

  TempFolder folder_;
  fs::path root_ = folder_.path();
};

TEST_F(SourceFoldersTest, ReadsFilesBeneathTheFolder) {
  EXPECT_EQ(Read(At("code/train.py"))->text, "import torch\n");
  EXPECT_EQ(Read("train.py")->text, "import torch\n");
  EXPECT_EQ(Read(At("code/sub/data.py"))->text, "caf\xEF\xBF\xBD\n");
  EXPECT_GT(Read("train.py")->modified_ns, 1'700'000'000'000'000'000);
  fs::create_directory_symlink(At("code"), At("link"));
  EXPECT_EQ(SourceFolders::Open({At("link")})->Read(At("code/train.py"))->text, "import torch\n");
  EXPECT_EQ(SourceFolders::Open({At("link") + "/"})->Read(At("link/train.py"))->text, "import torch\n");
}

TEST_F(SourceFoldersTest, ATimeBeyond64BitsIsTheNearestWithin) {
  for (const auto& [seconds, ns] :
       {std::pair<time_t, int64_t>{10'413'792'000, INT64_MAX}, {5, 5'000'000'007}}) {
    const timespec times[] = {{}, {.tv_sec = seconds, .tv_nsec = 7}};
    ASSERT_EQ(::utimensat(AT_FDCWD, At("code/train.py").c_str(), times, 0), 0);
    EXPECT_EQ(Read("train.py")->modified_ns, ns);
  }
}

TEST_F(SourceFoldersTest, ReadsNothingOutsideTheFolder) {
  fs::create_symlink(At("secret.txt"), At("code/out.py"));
  fs::create_symlink("../secret.txt", At("code/up.py"));
  for (const char* path : {"/etc/passwd", "../secret.txt", "sub/../../secret.txt", "out.py", "up.py",
                           "nothing.py", "train.py/x", "", "/"}) {
    const auto read = Read(path);
    ASSERT_FALSE(read.has_value()) << path;
    EXPECT_EQ(read.error().code, ErrorCode::kNotFound) << path << ": " << read.error().message;
  }
  const auto beside = Read(At("code-other/train.py"));
  ASSERT_FALSE(beside.has_value());
  EXPECT_THAT(beside.error().message, HasSubstr("not in any source folder"));
}

TEST_F(SourceFoldersTest, RefusesHiddenSpecialAndHugeFiles) {
  ASSERT_EQ(::mkfifo(At("code/pipe").c_str(), 0600), 0);
  std::ofstream(root_ / "code/huge").seekp(SourceFolders::kMaxBytes) << 'x';
  for (const char* path : {".env", "sub/.git/config", "sub", "pipe", "huge"}) {
    const auto read = Read(path);
    ASSERT_FALSE(read.has_value()) << path;
    EXPECT_EQ(read.error().code, ErrorCode::kUnsupported) << path << ": " << read.error().message;
  }
}

TEST_F(SourceFoldersTest, WithoutAFolderItSaysHowToNameOne) {
  const auto read = SourceFolders().Read(At("code/train.py"));
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().message, HasSubstr("--sources"));
  EXPECT_EQ(SourceFolders::Open({At("nowhere")}).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(SourceFolders::Open({At("secret.txt")}).has_value());
}

}  // namespace
}  // namespace gpusonde::server
