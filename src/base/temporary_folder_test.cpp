// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temp_folder.h"

namespace gpusonde {
namespace {

TEST(TemporaryFolder, IsRemovedWithItsContents) {
  const TempFolder where;
  std::string path;
  {
    TemporaryFolder moved = TemporaryFolder::Create(where / "").value();
    const TemporaryFolder folder = std::move(moved);
    path = folder.path();
    std::ofstream(path + "/file") << "content";
    ASSERT_TRUE(std::filesystem::exists(path + "/file"));
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, SaysWhereItCannotBeCreated) {
  const auto folder = TemporaryFolder::Create("/nowhere");
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, ErrorCode::kNotFound);
  EXPECT_NE(folder.error().message.find("/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace gpusonde
