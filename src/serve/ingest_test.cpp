// SPDX-License-Identifier: Apache-2.0
#include "serve/ingest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/schema.h"
#include "model/tables/batches.h"
#include "model/tables/incidents.h"
#include "model/tables/kernel_windows.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/warnings.h"
#include "model/testing/random_batch.h"
#include "spool/codec.h"
#include "spool/upload.h"

namespace gpusonde::serve {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int64_t kToday = 20'000;
constexpr Id128 kAgent{7, 1};

model::Batch Samples(int64_t first_ns, int count) {
  model::BatchBuilder builder(model::kSamples);
  for (int i = 0; i < count; ++i) builder.Append({.time_ns = first_ns + i, .process = {1, 1}, .tid = 7});
  return builder.Take();
}

class IngestTest : public testing::Test {
 protected:
  server::HttpResponse Post(std::string body, std::vector<std::pair<std::string, std::string>> query) {
    return routes_.uploads({.path = "/api/v1/frames",
                            .query = std::move(query),
                            .if_none_match = {},
                            .accept = {},
                            .body = std::move(body)});
  }
  server::HttpResponse Post(const std::vector<model::Batch>& batches, int64_t first,
                            const std::string& host = "node-1", Id128 spool = kAgent, int64_t day = kToday) {
    std::string body;
    for (const model::Batch& batch : batches) spool::AppendToUpload(spool::EncodeBatch(batch).value(), body);
    return Post(std::move(body), {{"host", host},
                                  {"spool", spool.ToHex()},
                                  {"day", std::to_string(day)},
                                  {"first", std::to_string(first)}});
  }
  static json Ok(const server::HttpResponse& response) {
    EXPECT_EQ(response.status, 200) << *response.body;
    return json::parse(*response.body);
  }
  std::string Value(const std::string& sql, const std::string& host = "node-1") {
    store::LiveStore& store = *hosts_->Find(host).value()->Store().value();
    auto rows = store.Query(sql).value();
    return rows->Next().value() ? rows->Display(0) : "";
  }

  TempFolder folder_;
  std::unique_ptr<Hosts> hosts_ = Hosts::Open({.folder = folder_ / "hosts", .max_hosts = 2}).value();
  IngestCounts counts_;
  server::HttpRoutes routes_ = IngestRoutes(*hosts_, counts_, [] { return kToday * kNanosPerDay + 1; });
};

TEST_F(IngestTest, FramesAreStoredOnceHoweverOftenTheyCome) {
  EXPECT_EQ(Ok(Post({Samples(100, 3), Samples(200, 3)}, 1))["committed"], 2);
  EXPECT_EQ(Ok(Post({Samples(100, 3), Samples(200, 3)}, 1))["committed"], 2);
  // Part of it is new, as after an answer that was lost.
  EXPECT_EQ(Ok(Post({Samples(200, 3), Samples(300, 3)}, 2))["committed"], 3);
  EXPECT_EQ(Value("SELECT count(*) FROM samples"), "9");
  EXPECT_EQ(Value("SELECT count(DISTINCT time_ns) FROM samples"), "9");
  EXPECT_EQ(counts_.requests, 3);
}

TEST_F(IngestTest, WhatWasAnsweredSurvivesTheServer) {
  Ok(Post({Samples(100, 3)}, 1));
  // As after a kill: the files as they are now, without the store being closed.
  std::filesystem::copy(folder_ / "hosts", folder_ / "copy", std::filesystem::copy_options::recursive);
  hosts_ = Hosts::Open({.folder = folder_ / "copy"}).value();
  routes_ = IngestRoutes(*hosts_, counts_, [] { return kToday * kNanosPerDay + 1; });
  EXPECT_EQ(Value("SELECT count(*) FROM samples"), "3");
  EXPECT_EQ(Ok(Post({Samples(100, 3)}, 1))["committed"], 1);
  EXPECT_EQ(Value("SELECT count(*) FROM samples"), "3");
}

TEST_F(IngestTest, AnEmptyRequestSaysHowFarTheServerIs) {
  EXPECT_EQ(Ok(Post({}, 1)), json({{"committed", 0}, {"repeat_names", 0}, {"pause_ms", 10'000}}));
  Ok(Post({Samples(100, 1)}, 41));
  EXPECT_EQ(Ok(Post({}, 1))["committed"], 41);
}

TEST_F(IngestTest, AServerThatLacksEarlierFramesAsksForTheNames) {
  EXPECT_EQ(Ok(Post({Samples(100, 1)}, 1, "new"))["repeat_names"], 0);
  EXPECT_EQ(Ok(Post({Samples(100, 1)}, 41))["repeat_names"], 1);
  EXPECT_EQ(Ok(Post({Samples(200, 1)}, 42))["repeat_names"], 0);
}

TEST_F(IngestTest, AServerThatHasSetADaysFileAsideAsksForTheNames) {
  Ok(Post({Samples(100, 1)}, 1, "node-1", kAgent, kToday - 1));
  Ok(Post({Samples(200, 1)}, 2));
  hosts_.reset();
  const std::string today = folder_ / "hosts/node-1/2024-10-04.sonde";
  std::filesystem::resize_file(today, std::filesystem::file_size(today) / 2);
  hosts_ = Hosts::Open({.folder = folder_ / "hosts"}).value();
  routes_ = IngestRoutes(*hosts_, counts_, [] { return kToday * kNanosPerDay + 1; });
  EXPECT_EQ(Ok(Post({Samples(300, 1)}, 3))["repeat_names"], 1);
  EXPECT_EQ(Ok(Post({Samples(400, 1)}, 4))["repeat_names"], 0);
}

TEST_F(IngestTest, AgentsOfAWatchedHostSendEverySecond) {
  Ok(Post({}, 1));
  hosts_->Find("node-1").value()->SetWatched(MonotonicNow());
  EXPECT_EQ(Ok(Post({}, 1))["pause_ms"], 1000);
}

TEST_F(IngestTest, HostsAreApart) {
  Ok(Post({Samples(100, 3)}, 1, "a"));
  Ok(Post({Samples(100, 5)}, 1, "b", {7, 2}));
  EXPECT_EQ(Value("SELECT count(*) FROM samples", "a"), "3");
  EXPECT_EQ(Value("SELECT count(*) FROM samples", "b"), "5");
  EXPECT_EQ(Post({Samples(100, 1)}, 1, "c", {7, 3}).status, 503) << "--max-hosts";
  EXPECT_EQ(Post({Samples(100, 1)}, 1, "b", kAgent).status, 503) << "the name is taken";
  EXPECT_EQ(counts_.turned_away, 2);
  EXPECT_THAT(
      counts_.refusals.Sentences(MonotonicNow()),
      testing::UnorderedElementsAre(HasSubstr("Rows of c are refused: this server has 2 hosts already"),
                                    HasSubstr("Rows of b are refused: another agent sends as")));
}

TEST_F(IngestTest, RowsThatTheStoreCouldNotAppendAreRefusedBeforeItSeesThem) {
  Ok(Post({Samples(100, 3)}, 1));
  model::Batch other_type = Samples(200, 1);
  other_type.columns[0].type = model::ColumnType::kFloat64;
  model::Batch null = Samples(200, 1);
  null.columns[0].valid = {0};
  model::BatchBuilder commits(model::kBatches);
  commits.Append({.spool = kAgent, .sequence = 1'000'000});
  model::Batch long_and_thin{.table = "devices", .rows = 2'000'000, .columns = {}};
  long_and_thin.columns.push_back({.name = "simulated", .type = model::ColumnType::kBool});
  long_and_thin.columns[0].values.resize(long_and_thin.rows);
  for (const model::Batch& batch :
       {other_type, null, long_and_thin, commits.Take(), model::EmptyBatch(*model::FindTable("meta"))}) {
    const server::HttpResponse answer = Post({Samples(300, 1), batch}, 2);
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(*answer.body, HasSubstr(batch.table));
  }
  EXPECT_EQ(counts_.refused, 5);
  EXPECT_EQ(Value("SELECT count(*) FROM samples"), "3");
  EXPECT_EQ(Ok(Post({Samples(300, 1)}, 2))["committed"], 2);
}

TEST_F(IngestTest, SumsOfLostGpuRecordsAreStoredAndNoOthers) {
  const auto sums = [](std::initializer_list<model::WorkPart> parts) {
    model::BatchBuilder builder(model::kKernelWindows);
    for (const model::WorkPart part : parts)
      builder.Append({.part = part, .process = {1, 1}, .name = "gemm", .count = 3, .sketch = {}});
    return builder.Take();
  };
  EXPECT_EQ(Ok(Post({sums({model::WorkPart::kLost, model::WorkPart::kLost})}, 1))["committed"], 1);
  EXPECT_EQ(Value("SELECT sum(count)::BIGINT FROM kernel_windows WHERE part = 'lost'"), "6");
  model::Batch without_part = sums({model::WorkPart::kLost});
  std::erase_if(without_part.columns, [](const auto& column) { return column.name == "part"; });
  for (const model::Batch& batch : {sums({model::WorkPart::kLost, model::WorkPart::kAll}), without_part}) {
    const server::HttpResponse answer = Post({batch}, 2);
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(*answer.body, HasSubstr("lost records"));
  }
}

template <class Table>
model::Batch OneRow(const Table& table, const typename Table::Row& row) {
  model::BatchBuilder builder(table);
  builder.Append(row);
  return builder.Take();
}

TEST_F(IngestTest, WhatAKilledAgentLeftOpenEndsWhenItWasLastSeen) {
  constexpr int64_t kBase = kToday * kNanosPerDay;
  const auto at = [](int64_t seconds) { return kBase + seconds * kNanosPerSecond; };
  const auto run = [&](uint64_t number, int64_t seconds) {
    return OneRow(model::kSources, {.source = {8, number}, .host = "node-1", .started_ns = at(seconds)});
  };
  const auto incident = [&](const std::string& cause, int64_t seconds) {
    return OneRow(model::kIncidents, {.incident = {9, static_cast<uint64_t>(seconds)},
                                      .process = {1, 1},
                                      .start_ns = at(seconds),
                                      .seen_ns = at(seconds + 10),
                                      .cause = cause});
  };
  Ok(Post({run(1, 100), Samples(at(200), 1), incident("lasting", 150), incident("late", 195)}, 1));
  Ok(Post({OneRow(model::kWarnings, {.warning = {9, 9}, .indicator = "power", .start_ns = at(160)})}, 5));
  EXPECT_EQ(Value("SELECT count(end_ns) FROM incidents"), "0");
  // Killed. What it had spooled comes with the first rows of the next run.
  Ok(Post({incident("spooled", 198), run(2, 300), Samples(at(301), 1)}, 6));
  const auto end_of = [&](const std::string& cause) {
    return Value("SELECT end_ns FROM incidents WHERE cause = '" + cause + "'");
  };
  EXPECT_EQ(end_of("lasting"), std::to_string(at(200)));
  EXPECT_EQ(end_of("late"), std::to_string(at(205))) << "no earlier than it was seen";
  EXPECT_EQ(end_of("spooled"), std::to_string(at(208)));
  EXPECT_EQ(Value("SELECT end_ns FROM warnings"), std::to_string(at(200)));
  EXPECT_EQ(Value("SELECT count(*) FROM incidents"), "3");

  Ok(Post({incident("of this run", 310)}, 9));
  Ok(Post({run(2, 300)}, 10, "node-1", kAgent, kToday + 1));  // names are repeated at midnight
  EXPECT_EQ(end_of("of this run"), "NULL");
}

TEST_F(IngestTest, EveryTableOfRandomRowsIsStoredOrRefused) {
  std::mt19937_64 random(3);
  int64_t next = 1;
  for (const model::TableInfo& table : model::AllTables()) {
    const server::HttpResponse answer = Post({model::RandomBatch(table, 500, random)}, next);
    ASSERT_TRUE(answer.status == 200 || answer.status == 400) << table.name << *answer.body;
    if (answer.status != 200) continue;
    EXPECT_EQ(json::parse(*answer.body)["committed"], next++) << table.name;
  }
  EXPECT_EQ(next - 1, std::ssize(model::AllTables()) - 5) << "the store's own";
  EXPECT_EQ(Value("SELECT count(*) FROM samples"), "500") << "it can still be read";
}

TEST_F(IngestTest, TablesAndColumnsOfANewerAgentAreLeftOut) {
  model::Batch newer = Samples(100, 2);
  newer.columns.push_back({.name = "colour",
                           .type = model::ColumnType::kBool,
                           .values = std::vector<std::byte>(2),
                           .ends = {},
                           .valid = {}});
  model::Batch unknown = newer;
  unknown.table = "quarks";
  EXPECT_EQ(Ok(Post({newer, unknown}, 1))["committed"], 2);
  EXPECT_EQ(Value("SELECT count(*) FROM samples"), "2");
}

TEST_F(IngestTest, DaysFarFromTheServersClockAreTurnedAwayForLater) {
  for (const int64_t day : {kToday - 367, kToday + 2, int64_t{0}}) {
    const server::HttpResponse answer = Post({Samples(100, 1)}, 1, "node-1", kAgent, day);
    EXPECT_EQ(answer.status, 409) << "agents drop what is answered with 400";
    EXPECT_THAT(*answer.body, HasSubstr("the server's says 2024-10-04; correct the wrong one"));
    EXPECT_EQ(Post({}, 1, "past", kAgent, day).status, 200) << "a question has no rows";
  }
  EXPECT_EQ(counts_.turned_away, 3);
  EXPECT_EQ(counts_.refused, 0);
  for (const int64_t day : {kToday - 366, kToday + 1})
    EXPECT_EQ(Post({Samples(100, 1)}, 1, day < kToday ? "past" : "ahead", kAgent, day).status, 200);
}

TEST_F(IngestTest, MalformedRequestsAreRefusedAndCounted) {
  const std::vector<std::pair<std::string, std::string>> good = {
      {"host", "a"}, {"spool", kAgent.ToHex()}, {"day", std::to_string(kToday)}, {"first", "1"}};
  int64_t refused = 0;
  const auto refuses = [&](std::string body, std::vector<std::pair<std::string, std::string>> query) {
    EXPECT_EQ(Post(std::move(body), std::move(query)).status, 400);
    EXPECT_EQ(counts_.refused, ++refused);
  };
  for (size_t i = 0; i < good.size(); ++i) {
    auto query = good;
    query[i].second = "../x";
    refuses("", query);
    query.erase(query.begin() + static_cast<std::ptrdiff_t>(i));
    refuses("", query);
  }
  auto query = good;
  query[3].second = "0";
  refuses("", query);
  query[3].second = std::to_string(std::numeric_limits<int64_t>::max());
  refuses("", query);
  refuses("xyz", good);
  refuses(std::string(100, '\xff'), good);
  EXPECT_TRUE(hosts_->All().empty());
}

TEST_F(IngestTest, NothingElseIsAnswered) {
  for (const char* path : {"/api/v1/overview", "/", "/metrics", "/api/v1/frames"}) {
    EXPECT_EQ(routes_.api({.path = path, .query = {}, .if_none_match = {}, .accept = {}, .body = {}}).status,
              404);
    EXPECT_EQ(
        routes_.files({.path = path, .query = {}, .if_none_match = {}, .accept = {}, .body = {}}).status,
        404);
  }
  EXPECT_EQ(routes_.uploads({.path = "/api/v1/x", .query = {}, .if_none_match = {}, .accept = {}, .body = {}})
                .status,
            404);
  EXPECT_EQ(
      routes_.files({.path = "/healthz", .query = {}, .if_none_match = {}, .accept = {}, .body = {}}).status,
      200);
  EXPECT_EQ(
      routes_.api({.path = "/readyz", .query = {}, .if_none_match = {}, .accept = {}, .body = {}}).status,
      200);
}

TEST_F(IngestTest, AServerWithoutRoomIsNotReadyAndTurnsAgentsAway) {
  const auto full = Hosts::Open({.folder = folder_ / "full", .min_free_bytes = int64_t{1} << 60}).value();
  routes_ = IngestRoutes(*full, counts_, [] { return kToday * kNanosPerDay; });
  EXPECT_EQ(
      routes_.api({.path = "/readyz", .query = {}, .if_none_match = {}, .accept = {}, .body = {}}).status,
      503);
  EXPECT_EQ(Post({Samples(100, 1)}, 1).status, 503);
  EXPECT_EQ(counts_.turned_away, 1);
}

}  // namespace
}  // namespace gpusonde::serve
