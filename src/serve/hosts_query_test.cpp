// SPDX-License-Identifier: Apache-2.0
#include "serve/hosts_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/kernels.h"

namespace gpusonde::serve {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Three hosts with one, two and three kernels.
class HostsQueryTest : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    for (const char* name : {"one", "three", "two"}) {
      ++count;
      model::BatchBuilder kernels(model::kKernels);
      for (int i = 0; i < count; ++i) kernels.Append({.start_ns = i, .end_ns = i + 1, .name = "k"});
      ASSERT_TRUE(hosts_->FindOrMake(name).value()->Store().value()->Append({{kernels.Take()}}).has_value());
    }
  }
  server::HttpResponse Get(const std::string& sql,
                           std::vector<std::pair<std::string, std::string>> more = {}) {
    more.emplace_back("sql", sql);
    return query_.Answer({.path = "/api/v1/query", .query = std::move(more)});
  }
  json Ok(const std::string& sql, std::vector<std::pair<std::string, std::string>> more = {}) {
    const server::HttpResponse answer = Get(sql, std::move(more));
    EXPECT_EQ(answer.status, 200) << *answer.body;
    return json::parse(*answer.body);
  }

  TempFolder folder_;
  std::unique_ptr<Hosts> hosts_ = Hosts::Open({.folder = folder_ / "hosts"}).value();
  HostsQuery query_{*hosts_};
};

TEST_F(HostsQueryTest, EachHostAnswersForItself) {
  const json answer = Ok("SELECT name, count(*) AS n FROM kernels GROUP BY name;");
  EXPECT_EQ(
      answer["columns"].dump(),
      R"([{"name":"host","type":"VARCHAR"},{"name":"name","type":"VARCHAR"},{"name":"n","type":"BIGINT"}])");
  EXPECT_EQ(answer["rows"].dump(), R"([["one","k",1],["three","k",2],["two","k",3]])");
  EXPECT_EQ(answer["more"], false);
  EXPECT_EQ(answer["hosts"], 3);
  EXPECT_TRUE(answer["errors"].empty());
}

TEST_F(HostsQueryTest, OnlyForAdmins) {
  server::HttpRequest request{.path = "/api/v1/query", .query = {{"sql", "SELECT 1"}}};
  request.caller = server::Caller{.name = "ada", .scope = server::Scope::kRead};
  const server::HttpResponse refused = query_.Answer(request);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(*refused.body, HasSubstr("'ada' is of scope read"));
  request.caller->scope = server::Scope::kAdmin;
  EXPECT_EQ(query_.Answer(request).status, 200);
}

TEST_F(HostsQueryTest, NoFilesAreOpenedForAClientThatHasHungUp) {
  const auto two = hosts_->Find("two").value();
  ASSERT_TRUE(two->CloseFiles());
  std::stop_source gone;
  gone.request_stop();
  const Cancellation cancellation(gone.get_token());
  EXPECT_EQ(Get("SELECT 1").status, 503);
  EXPECT_FALSE(two->IsOpen());
}

TEST_F(HostsQueryTest, OnlyTheHostsThatAreNamed) {
  EXPECT_EQ(Ok("SELECT 1 AS x", {{"hosts", "two,one,two"}})["rows"].dump(), R"([["two",1],["one",1]])");
  EXPECT_EQ(Get("SELECT 1", {{"hosts", "two,four"}}).status, 404);
  EXPECT_EQ(Get("SELECT 1", {{"hosts", ""}}).status, 404);
}

TEST_F(HostsQueryTest, AllOfManyNamesAreAsked) {
  hosts_ = Hosts::Open({.folder = folder_ / "many", .max_hosts = 2000}).value();
  HostsQuery query(*hosts_);
  std::string names;
  for (int i = 0; i <= 1000; ++i) {
    const std::string name = "n" + std::to_string(i);
    ASSERT_TRUE(hosts_->FindOrMake(name).has_value());
    names += name + ",";
  }
  const server::HttpResponse answer =
      query.Answer({.path = "/api/v1/query", .query = {{"sql", "SELECT 1"}, {"hosts", names + "unknown"}}});
  EXPECT_EQ(answer.status, 404) << "the last one is looked for too";
}

TEST_F(HostsQueryTest, RowsAreLimited) {
  const json some = Ok("SELECT start_ns FROM kernels", {{"limit", "3"}});
  EXPECT_EQ(some["rows"].size(), 3u);
  EXPECT_EQ(some["more"], true);
  EXPECT_EQ(Ok("SELECT start_ns FROM kernels", {{"limit", "6"}})["more"], false);
  EXPECT_EQ(Get("SELECT 1", {{"limit", "0"}}).status, 400);
  const json large = Ok("SELECT repeat('x', 4000) FROM range(10000)", {{"limit", "10000"}});
  EXPECT_EQ(large["more"], true);
  EXPECT_LT(large["rows"].size(), 2500u) << "8 MB are the most";
}

TEST_F(HostsQueryTest, WrongStatementsNameAHost) {
  for (const char* sql : {"SELECT nothing FROM kernels", "DROP VIEW kernels", "SELECT 1; SELECT 2",
                          "INSERT INTO kernels SELECT * FROM kernels", "ATTACH 'x.db'", "SET threads = 1",
                          "SELECT 1) ; DELETE FROM raw.kernels; --", "COPY kernels TO 'x'"}) {
    const server::HttpResponse answer = Get(sql);
    EXPECT_EQ(answer.status, 400) << sql << *answer.body;
    EXPECT_THAT(*answer.body, HasSubstr("host one: ")) << sql;
  }
  EXPECT_EQ(Get("").status, 400);
  EXPECT_EQ(Get("SELECT * FROM read_text('/etc/passwd')").status, 403);
  EXPECT_EQ(Ok("SELECT count(*) AS n FROM kernels")["rows"].size(), 3u) << "all is as it was";
}

TEST_F(HostsQueryTest, WhatTakesTooLongIsStopped) {
  const int64_t begin_ns = MonotonicNow();
  const json answer = Ok("SELECT count(*) FROM range(10000000) a, range(10000000) b", {{"timeout_s", "1"}});
  EXPECT_LT(MonotonicNow() - begin_ns, 20 * kNanosPerSecond);
  ASSERT_EQ(answer["errors"].size(), 3u);
  EXPECT_EQ(answer["errors"][0]["host"], "one");
  EXPECT_THAT(answer["errors"][0]["message"].get<std::string>(), HasSubstr("took longer"));
  EXPECT_THAT(answer["errors"][2]["message"].get<std::string>(), HasSubstr("not asked"));
  EXPECT_EQ(Ok("SELECT 1 AS x")["rows"].size(), 3u);
}

TEST_F(HostsQueryTest, OneRunsAtATime) {
  std::jthread first([this] {
    constexpr const char* kLong = "SELECT count(*) FROM range(10000000) a, range(10000000) b";
    while (Get(kLong, {{"timeout_s", "2"}}).status == 503) std::this_thread::yield();
  });
  int busy = 0;
  for (int tries = 0; tries < 200 && busy == 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    busy += Get("SELECT 1").status == 503;
  }
  EXPECT_EQ(busy, 1);
}

TEST_F(HostsQueryTest, AHostThatFailsIsNamedAndTheOthersAnswer) {
  const auto four = hosts_->FindOrMake("four").value();
  const auto held = store::LiveStore::Open(four->folder());  // as by another server
  ASSERT_TRUE(held.has_value());
  const json answer = Ok("SELECT 1 AS x");
  EXPECT_EQ(answer["rows"].size(), 3u);
  ASSERT_EQ(answer["errors"].size(), 1u);
  EXPECT_EQ(answer["errors"][0]["host"], "four");
}

}  // namespace
}  // namespace gpusonde::serve
