// SPDX-License-Identifier: Apache-2.0
#include "serve/hosts_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/incidents.h"
#include "model/tables/kernels.h"
#include "model/tables/processes.h"
#include "model/tables/sources.h"

namespace gpusonde::serve {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Query = std::vector<std::pair<std::string, std::string>>;

class HostsApiTest : public testing::Test {
 protected:
  void Add(const std::string& name) {
    const auto host = hosts_->FindOrMake(name).value();
    model::BatchBuilder sources(model::kSources);
    sources.Append(
        {.source = {1, 1}, .host = name, .started_ns = EpochNow(), .ended_ns = EpochNow() + kNanosPerSecond});
    ASSERT_TRUE(host->Store().value()->Append({{sources.Take()}}).has_value());
    host->SetLastSeen(EpochNow());
  }
  server::HttpResponse Get(const std::string& endpoint, Query query = {}) {
    return api_({.path = "/api/v1/" + endpoint,
                 .query = std::move(query),
                 .if_none_match = {},
                 .accept = {},
                 .body = {}});
  }
  json Ok(const std::string& endpoint, Query query = {}) {
    const server::HttpResponse answer = Get(endpoint, std::move(query));
    EXPECT_EQ(answer.status, 200) << *answer.body;
    return json::parse(*answer.body);
  }

  TempFolder folder_;
  std::unique_ptr<Hosts> hosts_ = Hosts::Open({.folder = folder_ / "hosts"}).value();
  IngestCounts counts_;
  server::HttpHandler api_ = HostsApi(*hosts_, counts_);
};

TEST_F(HostsApiTest, AHostWhoseAgentHasOnlyAskedIsNotSilentSince1970) {
  hosts_->FindOrMake("one").value();
  EXPECT_EQ(Ok("overview")["notices"][0], "one has sent nothing that could be stored yet.");
}

TEST_F(HostsApiTest, WithoutHostsThereIsAnEmptyOverview) {
  const json overview = Ok("overview");
  EXPECT_EQ(overview["mode"], "serve");
  EXPECT_TRUE(overview["from_us"].is_null());
  EXPECT_EQ(overview["title"], "0 hosts");
  EXPECT_TRUE(Ok("hosts")["hosts"].empty());
}

TEST_F(HostsApiTest, TheOnlyHostNeedsNoName) {
  Add("one");
  EXPECT_EQ(Ok("overview")["sources"][0]["host"], "one");
  EXPECT_EQ(Ok("overview", {{"host", "one"}})["title"], "one");
  EXPECT_EQ(Get("flamegraph").status, 200);
}

TEST_F(HostsApiTest, OfSeveralHostsOneIsNamed) {
  Add("one");
  Add("two");
  EXPECT_EQ(Ok("overview")["title"], "2 hosts");
  EXPECT_EQ(Ok("overview", {{"host", "two"}})["sources"][0]["host"], "two");
  EXPECT_EQ(Ok("flamegraph", {{"type", "cpu"}, {"host", "two"}})["total"], 0);
  const server::HttpResponse unnamed = Get("flamegraph");
  EXPECT_EQ(unnamed.status, 400);
  EXPECT_THAT(*unnamed.body, HasSubstr("'host' is missing"));
  EXPECT_EQ(Get("overview", {{"host", "three"}}).status, 404);
  EXPECT_EQ(Get("overview", {{"host", "one"}, {"host", "two"}}).status, 400) << "given twice";
}

TEST_F(HostsApiTest, WhatIsOfAllHostsTakesNoParameters) {
  Add("one");
  Add("two");
  for (const char* endpoint : {"hosts", "overview"}) {
    const server::HttpResponse refused = Get(endpoint, {{"silent", "1"}});
    EXPECT_EQ(refused.status, 400) << endpoint;
    EXPECT_THAT(*refused.body, HasSubstr("unknown parameter 'silent'"));
  }
}

TEST_F(HostsApiTest, TheListHasALineForEachHost) {
  Add("one");
  Add("two");
  counts_.refused = 3;
  const json list = Ok("hosts");
  ASSERT_EQ(list["hosts"].size(), 2u);
  const json& one = list["hosts"][0];
  EXPECT_EQ(one["name"], "one");
  EXPECT_EQ(one["gpus"], 0);
  EXPECT_TRUE(one["busy"].is_null());
  EXPECT_EQ(one["incidents"], 0);
  EXPECT_EQ(one["silent"], false);
  EXPECT_GT(one["bytes"], 0);
  EXPECT_EQ(list["received"]["refused"], 3);
}

TEST_F(HostsApiTest, OfAHostThatIsGoneNeitherIdleTimeNorAnIncidentLasts) {
  const int64_t begin_ns = EpochNow() - 3 * kNanosPerDay;
  for (const char* name : {"gone", "there"}) {
    const auto host = hosts_->FindOrMake(name).value();
    const auto add = [&](const auto& table, const auto& row) {
      model::BatchBuilder rows(table);
      rows.Append(row);
      ASSERT_TRUE(host->Store().value()->Append({{rows.Take()}}).has_value());
    };
    add(model::kSources, model::Source{.source = {1, 1}, .host = name, .started_ns = begin_ns});
    add(model::kProcesses, model::Process{.process = {5, 1}, .source = {1, 1}, .pid = 1});
    add(model::kGpuSessions, model::GpuSession{.process = {5, 1}, .session = 1, .start_ns = begin_ns});
    add(model::kKernels, model::Kernel{.process = {5, 1},
                                       .device = {6, 1},
                                       .session = 1,
                                       .start_ns = EpochNow() - 300 * kNanosPerSecond,
                                       .end_ns = EpochNow() - 299 * kNanosPerSecond,
                                       .name = "k"});
    add(model::kIncidents, model::Incident{.incident = {7, 1}, .process = {5, 1}, .start_ns = begin_ns});
    host->SetLastSeen(EpochNow());
  }
  hosts_->Find("gone").value()->SetLastSeen(EpochNow() - 2 * kNanosPerDay);
  const json list = Ok("hosts");
  EXPECT_EQ(list["hosts"][0]["error"], "");
  EXPECT_EQ(list["hosts"][0]["gpus"], 1);
  EXPECT_TRUE(list["hosts"][0]["busy"].is_null());
  EXPECT_TRUE(list["hosts"][1]["busy"].is_number());
  EXPECT_EQ(list["hosts"][0]["incidents"], 0);
  EXPECT_EQ(list["hosts"][1]["incidents"], 1);
  ASSERT_EQ(list["incidents"].size(), 1u);
  EXPECT_EQ(list["incidents"][0]["host"], "there");
}

TEST_F(HostsApiTest, TheListHasTheIncidentsOfAllHostsTheNewestFirst) {
  for (const int64_t number : {1, 3, 2}) {
    const std::string name = "node-" + std::to_string(number);
    Add(name);
    model::BatchBuilder incidents(model::kIncidents);
    for (const int64_t minutes : {number, number + 10})
      incidents.Append({.incident = {7, static_cast<uint64_t>(minutes)},
                        .process = {5, 1},
                        .start_ns = EpochNow() - minutes * 60 * kNanosPerSecond,
                        .end_ns = EpochNow(),
                        .slowdown = 2,
                        .cause = "cpu_contention",
                        .sentence = std::to_string(minutes)});
    ASSERT_TRUE(hosts_->Find(name).value()->Store().value()->Append({{incidents.Take()}}).has_value());
  }
  std::vector<std::string> found;
  const json list = Ok("hosts");
  for (const json& host : list["hosts"]) EXPECT_EQ(host["error"], "");
  for (const json& incident : list["incidents"])
    found.push_back(incident["host"].get<std::string>() + " " + incident["sentence"].get<std::string>());
  EXPECT_THAT(
      found, testing::ElementsAre("node-1 1", "node-2 2", "node-3 3", "node-1 11", "node-2 12", "node-3 13"));
  EXPECT_EQ(list["incidents_omitted"], 0);
}

TEST_F(HostsApiTest, TheListSaysHowManyIncidentsItLeavesOut) {
  Add("one");
  Add("two");
  model::BatchBuilder incidents(model::kIncidents);
  for (uint64_t number = 1; number <= 33; ++number)
    incidents.Append({.incident = {7, number}, .process = {5, 1}, .start_ns = EpochNow()});
  ASSERT_TRUE(hosts_->Find("one").value()->Store().value()->Append({{incidents.Take()}}).has_value());
  const json list = Ok("hosts");
  EXPECT_EQ(list["hosts"][0]["incidents"], 33);
  EXPECT_EQ(list["incidents"].size(), 20u);
  EXPECT_EQ(list["incidents_omitted"], 13);
}

// A job with a process on each host, which kept its GPU busy for half of the ten seconds.
TEST_F(HostsApiTest, UsageIsOfAllHostsTogether) {
  const int64_t start_ns = EpochNow() - 60 * kNanosPerSecond;
  for (const uint64_t number : {1, 2}) {
    const std::string name = number == 1 ? "one" : "two";
    const auto host = hosts_->FindOrMake(name).value();
    store::Store& store = *host->Store().value();
    const Id128 process{5, number}, device{6, number};
    const auto add = [&](const auto& table, const auto& row) {
      model::BatchBuilder rows(table);
      rows.Append(row);
      ASSERT_TRUE(store.Append({{rows.Take()}}).has_value());
    };
    add(model::kSources, model::Source{.source = {9, number},
                                       .host = name,
                                       .started_ns = start_ns,
                                       .ended_ns = start_ns + 10 * kNanosPerSecond});
    add(model::kProcesses, model::Process{.process = process,
                                          .source = {9, number},
                                          .pid = 1,
                                          .cgroup = "/slurm/job_7",
                                          .exited_ns = start_ns + 10 * kNanosPerSecond});
    add(model::kGpuSessions, model::GpuSession{.process = process, .session = 1, .start_ns = start_ns});
    add(model::kKernels, model::Kernel{.process = process,
                                       .device = device,
                                       .session = 1,
                                       .start_ns = start_ns,
                                       .end_ns = start_ns + 5 * kNanosPerSecond,
                                       .name = "k"});
  }
  // The hosts are read in the background.
  for (int tries = 0; tries < 100 && !Ok("usage")["coverage"]["gaps"].empty(); ++tries) {
  }
  const json all = Ok("usage");
  EXPECT_EQ(all["coverage"]["hosts"], 2);
  EXPECT_EQ(all["gpus"], 2);
  ASSERT_EQ(all["groups"].size(), 1u);
  EXPECT_EQ(all["groups"][0]["name"], "job 7");
  EXPECT_EQ(all["groups"][0]["devices"], 2);
  EXPECT_EQ(all["groups"][0]["busy_ns"], 10 * kNanosPerSecond);
  EXPECT_EQ(all["groups"][0]["idle_ns"], 10 * kNanosPerSecond);
  EXPECT_EQ(Ok("usage", {{"by", "host"}})["groups"].size(), 2u);
  EXPECT_EQ(Ok("usage", {{"host", "one"}})["total"]["busy_ns"], 5 * kNanosPerSecond);
  EXPECT_EQ(Ok("usage", {{"to_us", "1000"}})["groups"].size(), 0u);
  EXPECT_EQ(Get("usage", {{"by", "colour"}}).status, 400);
  const server::HttpResponse future =
      Get("usage", {{"from_us", std::to_string((EpochNow() + 3600 * kNanosPerSecond) / 1000)}});
  EXPECT_EQ(future.status, 400);
  EXPECT_THAT(*future.body, HasSubstr("in the future"));
}

TEST_F(HostsApiTest, AHostThatFallsSilentHasANotice) {
  Add("one");
  EXPECT_TRUE(Ok("overview")["notices"].empty());
  EXPECT_EQ(Ok("overview")["silent"], false);
  hosts_->Find("one").value()->SetLastSeen(EpochNow() - 200 * kNanosPerSecond);
  EXPECT_THAT(Ok("overview")["notices"][0].get<std::string>(), HasSubstr("No data from one since"));
  EXPECT_EQ(Ok("overview")["silent"], true);
  EXPECT_EQ(Ok("hosts")["hosts"][0]["silent"], true);
}

TEST_F(HostsApiTest, AHostWhoseClockDiffersHasANotice) {
  Add("one");
  const auto host = hosts_->Find("one").value();
  for (const int64_t fine_s : {-59, 0, 599}) {
    host->SetSpoolAge(fine_s * kNanosPerSecond);
    EXPECT_TRUE(Ok("overview")["notices"].empty()) << fine_s;
  }
  host->SetSpoolAge(-1200 * kNanosPerSecond);
  EXPECT_THAT(Ok("overview")["notices"][0].get<std::string>(),
              HasSubstr("The clock of one is 20 minutes ahead of this server's"));
  host->SetSpoolAge(3600 * kNanosPerSecond);
  EXPECT_THAT(Ok("overview")["notices"][0].get<std::string>(), HasSubstr("one were 60 minutes old"));
}

TEST_F(HostsApiTest, TheListNamesHostsWhoseClocksDifferAndHasTheirIncidents) {
  for (const char* const name : {"a", "b", "c", "d", "e"}) Add(name);
  for (const char* const name : {"a", "c", "d", "e"})
    hosts_->Find(name).value()->SetSpoolAge(-1200 * kNanosPerSecond);
  model::BatchBuilder incidents(model::kIncidents);
  incidents.Append({.incident = {7, 1}, .process = {5, 1}, .start_ns = EpochNow() + 1190 * kNanosPerSecond});
  ASSERT_TRUE(hosts_->Find("a").value()->Store().value()->Append({{incidents.Take()}}).has_value());
  const json list = Ok("hosts"), &notices = list["notices"];
  EXPECT_EQ(list["hosts"][0]["incidents"], 1);
  ASSERT_EQ(notices.size(), 4u);
  EXPECT_THAT(notices[0].get<std::string>(), HasSubstr("The clock of a is 20 minutes ahead"));
  EXPECT_EQ(notices[3], "Times of 1 more host differ as well.");
}

TEST_F(HostsApiTest, TheListSaysWhichHostsAreMissingAndWhy) {
  Add("one");
  EXPECT_TRUE(Ok("hosts")["notices"].empty());
  counts_.refusals.Add("two", "the server is full", MonotonicNow());
  const json said = json::array({"Rows of two are refused: the server is full."});
  EXPECT_EQ(Ok("hosts")["notices"], said);
  EXPECT_EQ(Ok("overview")["notices"], said) << "there is no list";
  Add("three");
  EXPECT_EQ(Ok("hosts")["notices"], said);
  EXPECT_TRUE(Ok("overview", {{"host", "one"}})["notices"].empty());
}

TEST_F(HostsApiTest, LookingAtAHostMakesItsAgentSendMoreOften) {
  Add("one");
  Add("two");
  Ok("hosts");
  EXPECT_FALSE(hosts_->Find("one").value()->IsWatched(MonotonicNow()));
  Ok("overview", {{"host", "one"}});
  EXPECT_TRUE(hosts_->Find("one").value()->IsWatched(MonotonicNow()));
  EXPECT_FALSE(hosts_->Find("two").value()->IsWatched(MonotonicNow()));
}

TEST_F(HostsApiTest, PagesDoNotKeepAHostFromBeingDeleted) {
  Add("one");
  Ok("overview");
  hosts_->Find("one").value()->SetLastSeen(0);
  for (int64_t day = 1; day <= 7; ++day) {
    const auto other = hosts_->FindOrMake("other").value();
    ASSERT_TRUE(other->Store().has_value());
    other->SetLastSeen(EpochNow());
    std::ofstream(other->folder() + "/" + FormatUtcMinute(EpochNow() + day * kNanosPerDay).substr(0, 10) +
                  ".sonde");
  }
  hosts_->Retain(EpochNow());
  ASSERT_EQ(Ok("hosts")["hosts"].size(), 1u);
  EXPECT_EQ(Ok("hosts")["hosts"][0]["name"], "other");
  Add("one");
  EXPECT_EQ(Ok("overview", {{"host", "one"}})["sources"][0]["host"], "one");
}

}  // namespace
}  // namespace gpusonde::serve
