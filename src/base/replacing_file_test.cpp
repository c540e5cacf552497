// SPDX-License-Identifier: Apache-2.0
#include "base/replacing_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string_view>

#include "base/testing/temp_folder.h"

namespace gpusonde {
namespace {

using testing::IsEmpty;

class ReplacingFileTest : public testing::Test {
 protected:
  static void Write(const ReplacingFile& file, std::string_view text) {
    ASSERT_TRUE(WriteAll(file.fd(), std::as_bytes(std::span(text))).has_value());
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }
  TempFolder folder_;
  const std::string path_ = folder_.path() + "/file";
};

TEST_F(ReplacingFileTest, TheOldFileStaysUntilCommit) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").has_value());
  auto file = ReplacingFile::Create(path_);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  Write(*file, "new");
  EXPECT_EQ(ReadFile(path_).value(), "old");
  ASSERT_TRUE(file->Commit().has_value());
  EXPECT_EQ(ReadFile(path_).value(), "new");
  EXPECT_THAT(Names(), testing::ElementsAre("file"));
}

TEST_F(ReplacingFileTest, WithoutCommitNothingRemains) {
  {
    const auto file = ReplacingFile::Create(path_);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    Write(*file, "new");
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(ReplacingFileTest, AFileWithTheNameOfTheTemporaryOneStays) {
  ASSERT_TRUE(WriteFileAtomically(path_ + ".tmp", "of the user").has_value());
  auto file = ReplacingFile::Create(path_);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  Write(*file, "new");
  ASSERT_TRUE(file->Commit().has_value());
  EXPECT_EQ(ReadFile(path_).value(), "new");
  EXPECT_EQ(ReadFile(path_ + ".tmp").value(), "of the user");
  EXPECT_THAT(Names(), testing::UnorderedElementsAre("file", "file.tmp"));
}

}  // namespace
}  // namespace gpusonde
