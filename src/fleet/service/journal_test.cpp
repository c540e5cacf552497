// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/temp_folder.h"

namespace gpusonde::fleet {
namespace {

using ::testing::ElementsAre;

class JournalTest : public ::testing::Test {
 protected:
  // Opens it, and remembers its records.
  Result<Journal> Open() {
    records_.clear();
    return Journal::Open(folder_.path() + "/journal", [&](std::span<const uint8_t> record) -> Status {
      records_.emplace_back(record.begin(), record.end());
      return {};
    });
  }
  static Status Append(Journal& journal, const std::string& text) {
    return journal.Append('T', std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }
  std::string OnlyFile() const {
    return std::filesystem::directory_iterator(folder_.path() + "/journal")->path().string();
  }

  TempFolder folder_;
  std::vector<std::string> records_;
};

TEST_F(JournalTest, KeepsItsRecords) {
  {
    auto journal = Open();
    ASSERT_TRUE(journal.has_value()) << journal.error().message;
    EXPECT_TRUE(Append(*journal, "one").has_value());
    EXPECT_TRUE(Append(*journal, "").has_value());
  }
  auto journal = Open();
  ASSERT_TRUE(journal.has_value()) << journal.error().message;
  EXPECT_THAT(records_, ElementsAre("Tone", "T"));
  EXPECT_TRUE(Append(*journal, "three").has_value());
  ASSERT_TRUE(Open().has_value());
  EXPECT_THAT(records_, ElementsAre("Tone", "T", "Tthree"));
}

TEST_F(JournalTest, CutsOffARecordThatWasBeingWritten) {
  {
    auto journal = Open();
    ASSERT_TRUE(journal.has_value());
    EXPECT_TRUE(Append(*journal, "one").has_value());
    EXPECT_TRUE(Append(*journal, "two").has_value());
  }
  std::filesystem::resize_file(OnlyFile(), std::filesystem::file_size(OnlyFile()) - 1);
  {
    auto journal = Open();
    ASSERT_TRUE(journal.has_value()) << journal.error().message;
    EXPECT_THAT(records_, ElementsAre("Tone"));
    EXPECT_TRUE(Append(*journal, "again").has_value());
  }
  ASSERT_TRUE(Open().has_value());
  EXPECT_THAT(records_, ElementsAre("Tone", "Tagain"));
}

TEST_F(JournalTest, RefusesDamageBeforeItsEnd) {
  {
    auto journal = Open();
    ASSERT_TRUE(journal.has_value());
    for (const char* const text : {"one", "two", "three"}) EXPECT_TRUE(Append(*journal, text).has_value());
  }
  const int fd = ::open(OnlyFile().c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "x", 1, 48 + 28 + 1), 1);
  ::close(fd);
  EXPECT_EQ(Open().error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::fleet
