// SPDX-License-Identifier: Apache-2.0
#include "serve/host_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/temp_folder.h"
#include "base/testing/units.h"
#include "model/tables/devices.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernels.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"

namespace gpusonde::serve {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMinute = 60 * kSecond, kHour = 60 * kMinute;
constexpr std::chrono::seconds kPatient(100);  // however slow the machine is
const usage::SumBy kBySlurmJob{.by = usage::By::kJob};

// Hosts whose programs have worked in the last hours.
class HostUsageTest : public testing::Test {
 protected:
  // Rows that an agent sends now.
  void Send(const std::string& name, const std::vector<model::Batch>& frames) {
    const auto host = hosts_->FindOrMake(name).value();
    store::LiveStore& store = *host->Store().value();
    const Id128 spool = IdHasher("spool").Add(name).Finish();
    const int64_t first = store.CommittedThrough(spool) + 1;
    const Status sent = store.Commit(store::DayOf(EpochNow()), spool, first, frames);
    ASSERT_TRUE(sent.has_value()) << sent.error().message;
    host->AddUsageChange(usage::ChangedFrom(frames));
    host->SetLastSeen(EpochNow());
  }
  template <class Table>
  static model::Batch Rows(const Table& table, const std::vector<typename Table::Row>& rows) {
    model::BatchBuilder builder(table);
    for (const auto& row : rows) builder.Append(row);
    return builder.Take();
  }
  // A process of job 7 that has run for three hours, and worked 20 s of each minute of the first two.
  void SendHours(const std::string& name, uint64_t number) {
    std::vector<model::Kernel> kernels;
    for (int64_t minute = 0; minute < 120; ++minute)
      kernels.push_back(Kernel(number, begin_ns_ + minute * kMinute, 20 * kSecond));
    Send(name, {Rows(model::kSources, {{.source = {9, number}, .host = name, .started_ns = begin_ns_}}),
                Rows(model::kDevices, {{.device = {6, number}, .source = {9, number}, .name = "X"}}),
                Rows(model::kProcesses, {{.process = {5, number},
                                          .source = {9, number},
                                          .pid = 1,
                                          .cgroup = "/slurm/job_7",
                                          .started_ns = begin_ns_}}),
                Rows(model::kGpuSessions, {{.process = {5, number}, .session = 1, .start_ns = begin_ns_}}),
                Rows(model::kSamples, {{.time_ns = EpochNow(), .process = {5, number}, .tid = 1}}),
                Rows(model::kKernels, kernels)});
  }
  static model::Kernel Kernel(uint64_t number, int64_t start_ns, int64_t duration_ns) {
    return {.process = {5, number},
            .device = {6, number},
            .session = 1,
            .start_ns = start_ns,
            .end_ns = start_ns + duration_ns,
            .name = "k"};
  }
  usage::Usage Sum(HostUsage& usage) { return usage.Sum({begin_ns_, EpochNow()}, kBySlurmJob); }
  // What the host's store says of the same time, read directly.
  usage::Group Direct(const std::string& name) {
    store::LiveStore& store = *hosts_->Find(name).value()->Store().value();
    return usage::ReadUsage(store, {.from_ns = begin_ns_ - begin_ns_ % kHour, .filter = {}}, kBySlurmJob)
        .value()
        .Total();
  }

  const int64_t begin_ns_ = EpochNow() - 3 * kHour;
  TempFolder folder_;
  std::unique_ptr<Hosts> hosts_ = Hosts::Open({.folder = folder_ / "hosts"}).value();
};

TEST_F(HostUsageTest, SumsAreThoseOfTheHostsReadOneByOne) {
  SendHours("one", 1);
  SendHours("two", 2);
  HostUsage usage(*hosts_, {.timeout = kPatient});
  const usage::Usage all = Sum(usage);
  ASSERT_EQ(all.groups.size(), 1u);
  EXPECT_EQ(all.groups[0].name, "7");
  EXPECT_EQ(all.devices.size(), 2u);
  const usage::Group one = Direct("one"), two = Direct("two");
  EXPECT_EQ(all.groups[0].use.held_ns, one.use.held_ns + two.use.held_ns);
  EXPECT_NEAR(all.groups[0].use.busy_ns, one.use.busy_ns + two.use.busy_ns, 1000);
  EXPECT_NEAR(all.groups[0].use.busy_ns, 2.0 * 120 * 20 * kSecond, 1000);
  EXPECT_NEAR(all.groups[0].use.idle_ns, one.use.idle_ns + two.use.idle_ns, 1000);
  ASSERT_TRUE(all.coverage.has_value());
  EXPECT_EQ(all.coverage->hosts, 2);
  EXPECT_THAT(all.coverage->gaps, IsEmpty());
  EXPECT_LE(all.coverage->until_ns.value(), EpochNow());
  EXPECT_GT(all.coverage->until_ns.value(), EpochNow() - kMinute);
}

TEST_F(HostUsageTest, WhatComesLaterIsAdded) {
  SendHours("one", 1);
  SendHours("two", 2);
  HostUsage usage(*hosts_, {.age_ns = 0, .timeout = kPatient});
  Sum(usage);
  // Now, and long ago.
  Send("two", {Rows(model::kKernels, {Kernel(2, begin_ns_ + 150 * kMinute, 7 * kMinute),
                                      Kernel(2, begin_ns_ + 20 * kMinute + 30 * kSecond, 10 * kSecond)})});
  const usage::Usage all = Sum(usage);
  EXPECT_NEAR(all.groups.at(0).use.busy_ns, 2.0 * 120 * 20 * kSecond + 430.0 * kSecond, 1000);
  EXPECT_NEAR(all.groups.at(0).use.busy_ns, Direct("one").use.busy_ns + Direct("two").use.busy_ns, 1000);
}

TEST_F(HostUsageTest, OnlyWholeHoursAreSummed) {
  SendHours("one", 1);
  HostUsage usage(*hosts_, {.timeout = kPatient});
  const int64_t from_ns = begin_ns_ + 90 * kMinute;
  const usage::Usage part = usage.Sum({from_ns, from_ns + 1}, kBySlurmJob);
  EXPECT_EQ(part.range.from_ns, from_ns - from_ns % kHour);
  EXPECT_EQ(part.range.to_ns, from_ns - from_ns % kHour + kHour);
  EXPECT_EQ(part.groups.at(0).use.held_ns, kHour);
}

TEST_F(HostUsageTest, AHostThatCannotBeReadIsAGap) {
  SendHours("one", 1);
  const auto two = hosts_->FindOrMake("two").value();
  const auto held = store::LiveStore::Open(two->folder());  // as by another server
  ASSERT_TRUE(held.has_value());
  HostUsage usage(*hosts_, {.timeout = kPatient});
  const usage::Usage all = Sum(usage);
  EXPECT_EQ(all.groups.size(), 1u);
  ASSERT_EQ(all.coverage->gaps.size(), 1u);
  EXPECT_EQ(all.coverage->gaps[0].host, "two");
  EXPECT_THAT(all.coverage->gaps[0].why, HasSubstr("another gpusonde"));
}

TEST_F(HostUsageTest, ADeletedHostIsForgotten) {
  SendHours("one", 1);
  SendHours("two", 2);
  HostUsage usage(*hosts_, {.timeout = kPatient});
  EXPECT_EQ(Sum(usage).devices.size(), 2u);
  hosts_->Find("two").value()->SetLastSeen(0);
  // The other one has recorded days since.
  for (int64_t day = 1; day <= 7; ++day)
    std::ofstream(folder_ / "hosts/one/" + FormatUtcMinute(EpochNow() + day * 24 * kHour).substr(0, 10) +
                  ".sonde");
  // One that is in use stays until the next time.
  for (int tries = 0; tries < 1000 && hosts_->All().size() > 1; ++tries) {
    hosts_->Retain(EpochNow());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const usage::Usage left = Sum(usage);
  EXPECT_EQ(left.coverage->hosts, 1);
  EXPECT_EQ(left.devices.size(), 1u);
}

}  // namespace
}  // namespace gpusonde::serve
