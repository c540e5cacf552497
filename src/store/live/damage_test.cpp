// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/testing/temp_folder.h"
#include "model/tables/samples.h"
#include "store/live/live_store.h"

namespace gpusonde::store {
namespace {

namespace fs = std::filesystem;

constexpr Day kDamagedDay = std::chrono::sys_days(
    std::chrono::year_month_day(std::chrono::year(2026), std::chrono::month(11), std::chrono::day(23)));
constexpr Id128 kDamagedSpool{1, 2};

// A store that was killed: its last rows are in the log of its file.
class Damage : public testing::Test {
 protected:
  void SetUp() override {
    {
      Open(folder_ / "first");
      Commit(1);
      ASSERT_TRUE(store_->CloseFiles());
      Commit(2);
      fs::copy(folder_ / "first", folder_ / "live", fs::copy_options::recursive);
    }
    store_.reset();
    ASSERT_TRUE(fs::exists(log_));
  }
  void Open(const std::string& path) {
    store_.reset();
    auto opened = LiveStore::Open(path);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    store_ = std::move(*opened);
  }
  void Commit(int64_t time_ns) {
    model::BatchBuilder samples(model::kSamples);
    samples.Append({.time_ns = time_ns, .process = {1, 1}, .tid = 7});
    const Status committed = store_->Commit(kDamagedDay, kDamagedSpool, ++frames_, {{samples.Take()}});
    ASSERT_TRUE(committed.has_value()) << committed.error().message;
  }
  // Of the samples, each with a comma after it.
  std::string Times() {
    const auto rows = store_->Query("SELECT time_ns FROM samples ORDER BY time_ns");
    if (!rows.has_value()) return rows.error().message;
    std::string times;
    while ((*rows)->Next().value_or(false)) times += std::to_string((*rows)->Int64(0)) + ",";
    return times;
  }
  static void Spoil(const std::string& path) {
    std::ofstream file(path, std::ios::binary | std::ios::in);
    file.seekp(static_cast<std::streamoff>(fs::file_size(path) / 2));
    file << std::string(64, 'x');
  }

  TempFolder folder_;
  const std::string file_ = folder_ / "live/2026-11-23.sonde", log_ = file_ + ".wal";
  std::unique_ptr<LiveStore> store_;
  int64_t frames_ = 0;
};

TEST_F(Damage, WhatIsWholeIsReadWithItsLog) {
  Open(folder_ / "live");
  EXPECT_EQ(Times(), "1,2,");
}

TEST_F(Damage, TheLogOfADamagedFileGoesAsideWithIt) {
  fs::resize_file(file_, fs::file_size(file_) / 2);
  Open(folder_ / "live");
  EXPECT_TRUE(fs::exists(file_ + ".damaged"));
  EXPECT_TRUE(fs::exists(file_ + ".damaged.wal"));
  EXPECT_FALSE(fs::exists(log_));
  Commit(3);
  EXPECT_EQ(Times(), "3,");
  Open(folder_ / "live");
  EXPECT_EQ(Times(), "3,");
}

TEST_F(Damage, AnEarlierDamagedFileStays) {
  for (const char* name : {".damaged", ".damaged-2"}) {
    fs::resize_file(file_, fs::file_size(file_) / 2);
    const auto bytes = fs::file_size(file_);
    Open(folder_ / "live");
    ASSERT_TRUE(fs::exists(file_ + name));
    EXPECT_EQ(fs::file_size(file_ + name), bytes);
    Commit(3);
    ASSERT_TRUE(store_->CloseFiles());
  }
  EXPECT_TRUE(fs::exists(file_ + ".damaged"));
}

TEST_F(Damage, TheLogOfAFileThatIsGoneIsNotThatOfTheNext) {
  fs::remove(file_);
  Open(folder_ / "live");
  Commit(3);
  EXPECT_EQ(Times(), "3,");
  EXPECT_TRUE(fs::exists(file_ + ".damaged.wal"));
  Open(folder_ / "live");
  EXPECT_EQ(Times(), "3,");
}

TEST_F(Damage, OfADamagedLogOnlyItsRowsAreMissing) {
  Spoil(log_);
  Open(folder_ / "live");
  EXPECT_EQ(Times(), "1,");
  EXPECT_TRUE(fs::exists(file_ + ".damaged.wal"));
  EXPECT_FALSE(fs::exists(file_ + ".damaged"));
  ASSERT_EQ(store_->notices().size(), 1u);
  EXPECT_THAT(store_->notices()[0], testing::HasSubstr("The last rows of 2026-11-23"));
  Commit(3);
  EXPECT_TRUE(store_->TakeGap()) << "names may be missing";
  EXPECT_EQ(Times(), "1,3,");
  Open(folder_ / "live");
  EXPECT_EQ(Times(), "1,3,");
}

}  // namespace
}  // namespace gpusonde::store
