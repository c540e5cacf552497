// SPDX-License-Identifier: Apache-2.0
#include "base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/testing/temp_folder.h"

namespace gpusonde {
namespace {

TEST(RegularFile, RejectsAFifoOrADeviceWithoutBlocking) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (const std::string& path : {folder / "fifo", std::string("/dev/zero"), folder.path()}) {
    const Result<Fd> file = OpenRegular(path);
    ASSERT_FALSE(file.has_value()) << path;
    EXPECT_EQ(file.error().code, ErrorCode::kUnsupported) << path;
  }
}

TEST(RegularFile, IsReadUpToTheLimit) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "text", "0123456789").has_value());
  const Fd file = OpenRegular(folder / "text").value();
  EXPECT_EQ(ReadRegular(file, 100).value(), "0123456789");
  EXPECT_EQ(ReadRegular(file, 4).value(), "0123");
}

}  // namespace
}  // namespace gpusonde
