// SPDX-License-Identifier: Apache-2.0
#include "serve/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "base/heap.h"
#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/samples.h"

namespace gpusonde::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kRetainedDayNs = kNanosPerDay;

std::vector<std::string> NamesOf(const Hosts& hosts) {
  std::vector<std::string> names;
  for (const auto& host : hosts.All()) names.push_back(host->name());
  return names;
}

// Stores a sample of a day, numbered from 1970 on.
void CommitDay(Host& host, int64_t day) {
  store::LiveStore& store = *host.Store().value();
  model::BatchBuilder samples(model::kSamples);
  samples.Append({.time_ns = day * kRetainedDayNs, .process = {1, 1}});
  const Status committed = store.Commit(store::Day(std::chrono::days(day)), {1, 1},
                                        store.CommittedThrough({1, 1}) + 1, {{samples.Take()}});
  ASSERT_TRUE(committed.has_value()) << committed.error().message;
}

// A host that sends now, and has sent three days long ago.
void SendThreeDays(Hosts& hosts, const std::string& name) {
  const auto host = hosts.FindOrMake(name).value();
  for (int64_t day = 1; day <= 3; ++day) CommitDay(*host, day);
  host->SetLastSeen(EpochNow());
}

class HostsTest : public testing::Test {
 protected:
  std::unique_ptr<Hosts> Open(size_t max_hosts = 10) const {
    return Hosts::Open({.folder = folder_.path() + "/hosts", .max_hosts = max_hosts}).value();
  }
  TempFolder folder_;
};

TEST_F(HostsTest, AHostIsAFolderThatIsFoundAgain) {
  {
    const auto hosts = Open();
    EXPECT_EQ(hosts->Find("b").error().code, ErrorCode::kNotFound);
    for (const char* name : {"b", "a.example"})
      ASSERT_TRUE(hosts->FindOrMake(name).value()->Store().has_value());
    EXPECT_EQ(hosts->FindOrMake("b").value(), hosts->Find("b").value());
  }
  EXPECT_THAT(NamesOf(*Open()), ElementsAre("a.example", "b"));
}

TEST_F(HostsTest, NamesThatCouldLeaveTheFolderAreRefused) {
  const auto hosts = Open();
  for (const std::string& name :
       {std::string(), std::string(".."), std::string("a/b"), std::string(".a"), std::string("-a"),
        std::string("a\nb"), std::string("a\0b", 3), std::string(65, 'a'), std::string("ä")})
    EXPECT_EQ(hosts->FindOrMake(name).error().code, ErrorCode::kInvalidArgument) << name;
  EXPECT_TRUE(hosts->FindOrMake(std::string(64, 'a')).has_value());
}

TEST_F(HostsTest, BeyondTheLimitNoHostIsMade) {
  const auto hosts = Open(1);
  ASSERT_TRUE(hosts->FindOrMake("a").has_value());
  EXPECT_THAT(hosts->FindOrMake("b").error().message, HasSubstr("1 hosts already"));
  EXPECT_TRUE(hosts->FindOrMake("a").has_value());
}

TEST_F(HostsTest, OneServerUsesAFolder) {
  const auto hosts = Open();
  EXPECT_EQ(Hosts::Open({.folder = folder_.path() + "/hosts"}).error().code, ErrorCode::kUnavailable);
}

TEST_F(HostsTest, ANameIsOneAgentsForTwoMinutes) {
  const auto hosts = Open();
  const auto host = hosts->FindOrMake("a").value();
  constexpr Id128 kOne{1, 1}, kOther{2, 2};
  const int64_t now = 5 * kNanosPerSecond;
  EXPECT_TRUE(host->Claim(kOne, now).has_value());
  EXPECT_THAT(host->Claim(kOther, now + 119 * kNanosPerSecond).error().message, HasSubstr("--host"));
  EXPECT_TRUE(host->Claim(kOne, now + 119 * kNanosPerSecond).has_value());
  EXPECT_TRUE(host->Claim(kOther, now + 239 * kNanosPerSecond).has_value())
      << "an agent that was set up anew";
}

TEST_F(HostsTest, AHostIsSilentAfterTwoAndAHalfMinutesWhateverTheClockWasSetTo) {
  const auto hosts = Open();
  const auto host = hosts->FindOrMake("a").value();
  EXPECT_TRUE(host->IsSilent(MonotonicNow())) << "it has never sent";
  host->SetLastSeen(EpochNow() + 3600 * kNanosPerSecond);  // by a clock that was set back since
  EXPECT_FALSE(host->IsSilent(MonotonicNow() + 149 * kNanosPerSecond));
  EXPECT_TRUE(host->IsSilent(MonotonicNow() + 151 * kNanosPerSecond));
}

TEST_F(HostsTest, AHostThatHasSentNothingForTheDaysOfRetentionIsDeleted) {
  const auto hosts = Open();
  for (const char* name : {"gone", "there"}) {
    const auto host = hosts->FindOrMake(name).value();
    ASSERT_TRUE(host->Store().has_value());
    host->SetLastSeen(name == std::string("gone") ? 100 * kRetainedDayNs : 107 * kRetainedDayNs);
  }
  hosts->Retain(107 * kRetainedDayNs - 1);
  EXPECT_THAT(NamesOf(*hosts), ElementsAre("gone", "there"));
  {
    const auto used = hosts->Find("gone").value();
    hosts->Retain(107 * kRetainedDayNs);
    EXPECT_THAT(NamesOf(*hosts), ElementsAre("gone", "there")) << "a request reads it";
  }
  hosts->Retain(107 * kRetainedDayNs);
  EXPECT_THAT(NamesOf(*hosts), ElementsAre("there"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/hosts/gone"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/hosts/there"));
}

TEST_F(HostsTest, RetentionForAllTimeDeletesNoHostAndStillLimitsTheBytes) {
  const auto hosts =
      Hosts::Open({.folder = folder_.path() + "/hosts", .max_days = 1'000'000, .max_bytes = 0}).value();
  ASSERT_TRUE(hosts->FindOrMake("silent").value()->Store().has_value());
  hosts->Find("silent").value()->SetLastSeen(1);
  SendThreeDays(*hosts, "busy");
  hosts->Retain(EpochNow());
  EXPECT_THAT(NamesOf(*hosts), ElementsAre("busy", "silent"));
  EXPECT_EQ(hosts->Find("busy").value()->Store().value()->days().size(), 1u);
}

TEST_F(HostsTest, RetentionEndsBetweenTwoDaysOrHostsWhenTheServerStops) {
  const auto hosts =
      Hosts::Open({.folder = folder_.path() + "/hosts", .max_days = 1'000'000, .max_bytes = 0}).value();
  for (const char* const name : {"a", "b"}) SendThreeDays(*hosts, name);
  const auto days = [&](const char* name) {
    return hosts->Find(name).value()->Store().value()->days().size();
  };
  const auto is_gone = [&](const char* file) {
    return !std::filesystem::exists(folder_.path() + "/hosts/a/" + file);
  };
  hosts->Retain(EpochNow(), [&] { return is_gone("1970-01-02.sonde"); });
  EXPECT_EQ(days("a"), 2u);
  EXPECT_EQ(days("b"), 3u);
  hosts->Retain(EpochNow(), [&] { return is_gone("1970-01-03.sonde"); });
  EXPECT_EQ(days("a"), 1u);
  EXPECT_EQ(days("b"), 3u);
  hosts->Retain(EpochNow());
  EXPECT_EQ(days("b"), 1u);
}

TEST_F(HostsTest, WhileAHostIsDeletedTheOthersAreFoundAndItsNameIsNotUsed) {
  const auto hosts = Open();
  const std::string folder = folder_.path() + "/hosts/gone";
  bool found_meanwhile = false;
  std::string refusal;
  // On a busy machine this thread may sleep while all is deleted.
  for (int turn = 0; turn < 50 && (!found_meanwhile || refusal.empty()); ++turn) {
    ASSERT_TRUE(hosts->FindOrMake("gone").value()->Store().has_value());
    // Closing its database takes a while, and so do many files.
    for (int i = 0; i < 500; ++i) std::ofstream(folder + "/" + std::to_string(i));
    const std::jthread retain([&] {
      while (std::filesystem::exists(folder)) hosts->Retain(EpochNow());  // one that All has stays
    });
    while (std::filesystem::exists(folder)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (!hosts->All().empty()) continue;
      if (const auto made = hosts->FindOrMake("gone"); !made.has_value()) refusal = made.error().message;
      found_meanwhile |= std::filesystem::exists(folder);
    }
  }
  EXPECT_TRUE(found_meanwhile);
  EXPECT_THAT(refusal, HasSubstr("is being deleted"));
}

TEST_F(HostsTest, AClockThatIsAheadDeletesNoHost) {
  constexpr int64_t kToday = 20'000;
  const auto hosts = Open();
  const auto record = [&](const std::string& name, int64_t day) {
    CommitDay(*hosts->FindOrMake(name).value(), day);
    hosts->Find(name).value()->SetLastSeen(day * kRetainedDayNs);
  };
  record("gone", kToday - 6);
  for (int64_t day = kToday - 6; day <= kToday; ++day) record("there", day);
  hosts->Retain((kToday + 400) * kRetainedDayNs);
  EXPECT_THAT(NamesOf(*hosts), ElementsAre("gone", "there"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/hosts/gone"));
  record("there", kToday + 1);
  hosts->Retain(kToday * kRetainedDayNs);
  EXPECT_THAT(NamesOf(*hosts), ElementsAre("gone", "there")) << "it has sent, by a clock that is behind";
  hosts->Retain((kToday + 1) * kRetainedDayNs);
  EXPECT_THAT(NamesOf(*hosts), ElementsAre("there"));
}

TEST_F(HostsTest, StoresOfSilentHostsAreClosedAndOthersBeyondTheMemory) {
  const auto hosts = Open();
  const int64_t now_ns = EpochNow();
  const auto add = [&](const std::string& name, int64_t seen_ns) {
    const auto host = hosts->FindOrMake(name).value();
    model::BatchBuilder samples(model::kSamples);
    samples.Append({.time_ns = now_ns, .process = {1, 1}});
    ASSERT_TRUE(host->Store().value()->Append({{samples.Take()}}).has_value());
    host->SetLastSeen(seen_ns);
  };
  add("silent", now_ns - 200 * kNanosPerSecond);
  add("busy", now_ns);
  add("watched", now_ns);
  hosts->Find("watched").value()->SetWatched(MonotonicNow());
  const auto is_open = [&](const std::string& name) { return hosts->Find(name).value()->IsOpen(); };
  EXPECT_TRUE(is_open("silent"));
  EXPECT_GT(hosts->Find("busy").value()->MemoryBytes(), 0);
  EXPECT_EQ(hosts->LimitMemory(std::numeric_limits<int64_t>::max()), 1);
  EXPECT_FALSE(is_open("silent"));
  EXPECT_TRUE(is_open("busy"));

  // A byte too much is gained with the first one.
  EXPECT_EQ(hosts->LimitMemory(ResidentBytes() - 1), 1);
  EXPECT_FALSE(is_open("busy"));
  EXPECT_TRUE(is_open("watched")) << "closed last";
  EXPECT_EQ(hosts->LimitMemory(0), 1);
  EXPECT_FALSE(is_open("watched"));
  for (const char* name : {"silent", "busy", "watched"}) {
    auto rows = hosts->Find(name).value()->Store().value()->Query("SELECT count(*) FROM samples").value();
    ASSERT_TRUE(rows->Next().value());
    EXPECT_EQ(rows->Int64(0), 1) << name;
  }
}

TEST_F(HostsTest, RetentionOpensOnlyWhatHasComeSinceAndLeavesFilesAsTheyWere) {
  const auto hosts = Open();
  const auto host = hosts->FindOrMake("a").value();
  host->SetLastSeen(EpochNow());
  ASSERT_EQ(host->Retain(7, 1 << 30).value(), 0);
  EXPECT_FALSE(host->IsOpen());
  for (int64_t day = 1; day <= 3; ++day) {
    model::BatchBuilder samples(model::kSamples);
    samples.Append({.time_ns = day * kRetainedDayNs, .process = {1, 1}});
    ASSERT_TRUE(host->Store()
                    .value()
                    ->Commit(store::Day(std::chrono::days(day)), {1, 1}, day, {{samples.Take()}})
                    .has_value());
  }
  EXPECT_EQ(host->Retain(7, 0).value(), 0) << "nothing has come since";
  host->SetLastSeen(EpochNow());
  EXPECT_EQ(host->Retain(7, 0).value(), 2);
  EXPECT_TRUE(host->IsOpen());
  ASSERT_TRUE(host->CloseFiles());
  host->SetLastSeen(EpochNow());
  EXPECT_EQ(host->Retain(7, 0).value(), 0) << "the day that is written to stays";
  EXPECT_FALSE(host->IsOpen());
}

}  // namespace
}  // namespace gpusonde::serve
