// SPDX-License-Identifier: Apache-2.0
#include "store/queries/incident_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/units.h"
#include "model/tables/batches.h"
#include "model/tables/sources.h"
#include "store/queries/newest_incidents.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

constexpr Id128 kFirstRun{1, 1}, kSecondRun{1, 2};

// A run from 0 s whose last sign of life is of 20 s, with an incident and a warning that lasted then.
class KilledWhileSlow : public MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    AddRun(kFirstRun, 0, "node-1");
    Add(model::kBatches, {{.spool = {5, 1}, .sequence = 1, .committed_ns = 20 * kSecond}});
    Add(model::kIncidents, {{.incident = {2, 1},
                             .process = {3, 1},
                             .start_ns = 10 * kSecond,
                             .seen_ns = 12 * kSecond,
                             .cause = "cpu_contention"}});
    Add(model::kWarnings, {{.warning = {4, 1}, .indicator = "power", .start_ns = 11 * kSecond}});
  }
  void AddRun(const Id128& source, int64_t started_ns, const char* host,
              std::optional<int64_t> ended_ns = std::nullopt) {
    Add(model::kSources, {{.source = source,
                           .kind = model::SourceKind::kAgent,
                           .host = host,
                           .started_ns = started_ns,
                           .ended_ns = ended_ns}});
  }
  Incidents Read(int64_t from_ns) {
    auto read = ReadIncidents(*store_, {.from_ns = from_ns, .to_ns = 100 * kSecond}, 10);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return std::move(read).value_or(Incidents{});
  }
  NewestIncidents ReadNewest(int64_t from_ns) {
    auto read = ReadNewestIncidents(*store_, {from_ns, 100 * kSecond}, 10);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return std::move(read).value_or(NewestIncidents{});
  }
};

TEST_F(KilledWhileSlow, UntilGpusondeRunsAgainItLasts) {
  const Incidents read = Read(50 * kSecond);
  ASSERT_EQ(read.incidents.size(), 1);
  EXPECT_FALSE(read.incidents[0].incident.end_ns.has_value());
  ASSERT_EQ(read.warnings.size(), 1);
  EXPECT_FALSE(read.warnings[0].end_ns.has_value());
  const NewestIncidents newest = ReadNewest(50 * kSecond);
  ASSERT_EQ(newest.lines.size(), 1);
  EXPECT_FALSE(newest.lines[0].incident.end_ns.has_value());
}

TEST_F(KilledWhileSlow, AfterARestartItEndedWithTheRunThatReportedIt) {
  AddRun(kSecondRun, 40 * kSecond, "node-1");
  const Incidents read = Read(0);
  ASSERT_EQ(read.incidents.size(), 1);
  EXPECT_THAT(read.incidents[0].incident.end_ns, Optional(20 * kSecond));
  ASSERT_EQ(read.warnings.size(), 1);
  EXPECT_THAT(read.warnings[0].end_ns, Optional(20 * kSecond));
  const NewestIncidents newest = ReadNewest(0);
  ASSERT_EQ(newest.lines.size(), 1);
  EXPECT_THAT(newest.lines[0].incident.end_ns, Optional(20 * kSecond));
}

TEST_F(KilledWhileSlow, LaterTimesAfterARestartAreFreeOfIt) {
  AddRun(kSecondRun, 40 * kSecond, "node-1");
  const Incidents read = Read(50 * kSecond);
  EXPECT_THAT(read.incidents, IsEmpty());
  EXPECT_EQ(read.omitted, 0);
  EXPECT_THAT(read.warnings, IsEmpty());
  const NewestIncidents newest = ReadNewest(50 * kSecond);
  EXPECT_THAT(newest.lines, IsEmpty());
  EXPECT_EQ(newest.count, 0);
}

TEST_F(KilledWhileSlow, WhatTheNewRunReportsLasts) {
  AddRun(kSecondRun, 40 * kSecond, "node-1");
  Add(model::kIncidents,
      {{.incident = {2, 2}, .process = {3, 1}, .start_ns = 39 * kSecond, .seen_ns = 45 * kSecond}});
  const Incidents read = Read(0);
  ASSERT_EQ(read.incidents.size(), 2);
  EXPECT_FALSE(read.incidents[0].incident.end_ns.has_value()) << "reported by the new run, whenever it began";
  EXPECT_EQ(ReadNewest(50 * kSecond).count, 1);
}

TEST_F(KilledWhileSlow, AStopThatWasWrittenEndsIt) {
  AddRun(kFirstRun, 0, "node-1", 21 * kSecond);
  const Incidents read = Read(0);
  ASSERT_EQ(read.incidents.size(), 1);
  EXPECT_THAT(read.incidents[0].incident.end_ns, Optional(21 * kSecond));
}

TEST_F(KilledWhileSlow, AnotherHostsRunDoesNotEndIt) {
  AddRun(kSecondRun, 40 * kSecond, "node-2");
  EXPECT_EQ(Read(50 * kSecond).incidents.size(), 1);
}

}  // namespace
}  // namespace gpusonde::store
