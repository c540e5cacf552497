// SPDX-License-Identifier: Apache-2.0
// The tools, over canned responses of the API and over a store in memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mcp/flame_graph.h"
#include "mcp/server.h"
#include "mcp/source.h"
#include "mcp/time_limit.h"
#include "mcp/tool.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::mcp {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// main (1000) ─ step (900) ─ step (600) ─ inflate (500), with times of their own 100, 300, 100 and 500.
json RecursiveGraph() {
  return {{"type", "cpu"},
          {"unit", "ns"},
          {"total", 1000},
          {"samples", 10},
          {"strings", {"", "main", "step", "inflate", "libz.so.1", "/src/train.py"}},
          {"binaries", {{{"name", "libz.so.1"}}}},
          {"functions",
           {{"name", {1, 2, 3}},
            {"binary", {-1, -1, 0}},
            {"kind", {"native", "python", "native"}},
            {"file", {0, 5, 0}},
            {"line", {0, 41, 0}},
            {"internal", {0, 0, 0}}}},
          {"nodes",
           {{"function", {-1, 0, 1, 1, 2}},
            {"parent", {-1, 0, 1, 2, 3}},
            {"self", {0, 100, 300, 100, 500}},
            {"total", {1000, 1000, 900, 600, 500}}}}};
}

TEST(McpFlameGraph, ARecursiveFunctionCountsOnce) {
  const auto text = HottestPaths(RecursiveGraph().dump(), {.query = "", .bounds = "{}"}, 10);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const json paths = json::parse(*text);
  const json step = paths["functions_by_total"][1];
  EXPECT_EQ(step["name"], "step (train.py:41)");
  EXPECT_EQ(step["total_ns"], 900);
  EXPECT_EQ(step["self_ns"], 400);
  EXPECT_DOUBLE_EQ(step["self_share"], 0.4);
  EXPECT_EQ(paths["functions_by_self"][0]["name"], "inflate (libz.so.1)");
  EXPECT_THAT(paths["stacks"][0]["frames"],
              ElementsAre("main", "step (train.py:41)", "step (train.py:41)", "inflate (libz.so.1)"));
}

TEST(McpFlameGraph, FramesThatExplainNothingAreLeftOut) {
  json graph = RecursiveGraph();
  graph["functions"]["internal"] = {1, 0, 1};
  const json paths = json::parse(*HottestPaths(graph.dump(), {.query = "", .bounds = "{}"}, 10));
  EXPECT_EQ(paths["functions_by_self"][0]["self_ns"], 900) << "with that of inflate";
  ASSERT_EQ(paths["functions_by_total"].size(), 1U);
  EXPECT_EQ(paths["functions_by_total"][0]["name"], "step (train.py:41)");
  EXPECT_THAT(paths["stacks"][0]["frames"], ElementsAre("step (train.py:41)", "step (train.py:41)"));
  EXPECT_EQ(paths["stacks"][0]["self_ns"], 600);
}

TEST(McpFlameGraph, WhatIsBeyondTheLimitIsCounted) {
  const auto text = HottestPaths(RecursiveGraph().dump(), {.query = "", .bounds = "{}"}, 1);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const json paths = json::parse(*text);
  EXPECT_EQ(paths["stacks"].size(), 1U);
  EXPECT_EQ(paths["omitted"], (json{{"functions_by_self", 2}, {"functions_by_total", 2}, {"stacks", 3}}));
}

TEST(McpFlameGraph, AnInconsistentResponseIsAnError) {
  for (const auto& [pointer, value] :
       std::vector<std::pair<const char*, json>>{{"/nodes/parent", {-1, 0, 3, 2, 3}},  // a cycle
                                                 {"/nodes/self", {1}},
                                                 {"/nodes/function", {-1, 0, 1, 1, 9}},
                                                 {"/nodes/self", {0, INT64_MAX, 1, 0, 0}},
                                                 {"/nodes/self", {0, -1, 1, 0, 0}},
                                                 {"/functions/name", {1, 2, 77}},
                                                 {"/functions/binary", {-1, -1, 9}},
                                                 {"/functions/internal", {0, 0}},
                                                 {"/strings", 4}}) {
    json graph = RecursiveGraph();
    graph[json::json_pointer(pointer)] = value;
    EXPECT_FALSE(HottestPaths(graph.dump(), {.query = "", .bounds = "{}"}, 10).has_value()) << pointer;
  }
}

TEST(McpTools, OfARunningServerTheLastMinutesAreAskedFor) {
  std::vector<std::string> asked;
  const auto source = ServerSource([&](const std::string& target) -> Result<std::string> {
    asked.push_back(target);
    if (target == "overview") return R"({"live":true,"from_us":0,"to_us":5000000000})";
    return RecursiveGraph().dump();
  });
  Server server(*source);
  const auto call = [&](const std::string& arguments) {
    asked.clear();
    server.Handle({.id = "1",
                   .method = "tools/call",
                   .params = R"({"name":"hottest_paths","arguments":)" + arguments + "}"});
    return asked.back();
  };
  EXPECT_EQ(call("{}"), "flamegraph?from_us=4100000000&to_us=5000000000&type=cpu");
  EXPECT_EQ(call(R"({"last_s":9000})"), "flamegraph?from_us=0&to_us=5000000000&type=cpu");
  EXPECT_EQ(call(R"({"from_us":7})"), "flamegraph?from_us=7&type=cpu");
  EXPECT_EQ(call(R"({"last_s":1,"type":"off_cpu","wait":"lock","filter":"a b&c=d"})"),
            "flamegraph?from_us=4999000000&to_us=5000000000&filter=a%20b%26c%3Dd&type=off_cpu&wait=lock");
}

TEST(McpTools, TheLastMinutesOfAServerOfAnyTimeBeginAtZeroAtTheEarliest) {
  for (const int64_t to_us : {INT64_MIN, int64_t{-1}, int64_t{1}, INT64_MAX}) {
    std::vector<std::string> asked;
    const auto source = ServerSource([&](const std::string& target) -> Result<std::string> {
      asked.push_back(target);
      if (target == "overview") return json{{"live", true}, {"from_us", to_us}, {"to_us", to_us}}.dump();
      return RecursiveGraph().dump();
    });
    Server server(*source);
    const json call = json::parse(*server.Handle(
        {.id = "1", .method = "tools/call", .params = R"({"name":"hottest_paths","arguments":{}})"}));
    EXPECT_EQ(call["result"]["isError"], to_us < 0) << call.dump();
    if (to_us < 0) continue;  // such a range is empty
    EXPECT_EQ(asked.back(), fmt::format("flamegraph?from_us={}&to_us={}&type=cpu",
                                        std::max<int64_t>(to_us - 900'000'000, 0), to_us));
  }
}

TEST(McpTools, TimesThatCannotBeSubtractedAreAnError) {
  const auto source = ServerSource([](const std::string& target) -> Result<std::string> {
    if (target == "overview") return std::string("{}");
    if (!target.starts_with("summary")) return RecursiveGraph().dump();
    return json{{"gpu", {{"observed_ns", INT64_MIN}, {"busy_ns", 1}}}}.dump();
  });
  Server server(*source);
  const json call = json::parse(*server.Handle(
      {.id = "1", .method = "tools/call", .params = R"({"name":"while_gpu_idle","arguments":{}})"}));
  EXPECT_EQ(call["result"]["isError"], true);
  EXPECT_THAT(call.dump(), HasSubstr("can't be subtracted"));
}

TEST(McpTools, AnswersThatNestDeeperThanTheStackAllowsAreErrors) {
  const std::string brackets = std::string(500'000, '[') + std::string(500'000, ']');
  const std::string deep = R"({"live":true,"from_us":0,"to_us":5,"gpus":)" + brackets + "}";
  const auto source = ServerSource([&](const std::string&) -> Result<std::string> { return deep; });
  Server server(*source);
  const json call = json::parse(*server.Handle(
      {.id = "1", .method = "tools/call", .params = R"({"name":"gpu_usage","arguments":{"by":"job"}})"}));
  EXPECT_EQ(call["result"]["isError"], true);
  EXPECT_THAT(call.dump(), HasSubstr("more than 512 levels deep"));
}

TEST(McpTools, ToolsThatNeedFilesAreOnlyThereWithFiles) {
  const auto source = ServerSource([](const std::string&) -> Result<std::string> { return "{}"; });
  Server server(*source);
  const std::string list = *server.Handle({.id = "1", .method = "tools/list"});
  EXPECT_THAT(list, HasSubstr("hottest_paths"));
  EXPECT_THAT(list, Not(HasSubstr("query_sql")));
  const json call =
      json::parse(*server.Handle({.id = "2",
                                  .method = "tools/call",
                                  .params = R"({"name":"query_sql","arguments":{"sql":"SELECT 1"}})"}));
  EXPECT_EQ(call["error"]["code"], -32602);
}

TEST(McpTools, IncidentsKeepTheirEvidenceAndAreReadWithoutStrips) {
  json incident = {{"id", "1"},
                   {"sentence", "Steps slowed 2.2×"},
                   {"cause", "cpu_contention"},
                   {"confidence", 0.96},
                   {"account", json::array()},
                   {"causes", json::array()},
                   {"evidence", json::array()},
                   {"strips", json::array()}};
  for (int i = 0; i < 40; ++i) incident["evidence"].push_back({{"signal", std::to_string(i)}});
  const json body = {{"steps", 7},
                     {"omitted", 3},
                     {"incidents", {incident, incident}},
                     {"warnings", json::array()},
                     {"programs", {{{"name", "train"}}}}};
  std::string asked;
  const auto source = ServerSource([&](const std::string& target) -> Result<std::string> {
    if (target == "overview") return "{}";
    asked = target;
    return body.dump();
  });
  Server server(*source);
  const json call = json::parse(*server.Handle(
      {.id = "1", .method = "tools/call", .params = R"({"name":"incidents","arguments":{"limit":1}})"}));
  EXPECT_THAT(asked, HasSubstr("buckets=0"));
  const json answer = call["result"]["structuredContent"];
  EXPECT_EQ(answer["steps"], 7);
  EXPECT_THAT(answer["cut"], ElementsAre("incidents: … 4 more"));
  const json shown = answer["incidents"][0];
  EXPECT_EQ(shown["confidence"], 0.96);
  EXPECT_EQ(shown["evidence"].size(), 12U);
  EXPECT_EQ(shown["evidence_omitted"], 28);
  EXPECT_FALSE(shown.contains("strips"));
  EXPECT_EQ(answer["programs"][0]["name"], "train");
}

TEST(McpTools, OfManyProgramsTheFirstAreShown) {
  json body = {{"steps", 7}, {"omitted", 0}, {"incidents", json::array()}, {"warnings", json::array()}};
  for (int i = 0; i < 40; ++i) body["programs"].push_back({{"name", fmt::format("train {}", i)}});
  const auto source = ServerSource([&](const std::string& target) -> Result<std::string> {
    return target == "overview" ? "{}" : body.dump();
  });
  Server server(*source);
  const json call = json::parse(*server.Handle(
      {.id = "1", .method = "tools/call", .params = R"({"name":"incidents","arguments":{"limit":50}})"}));
  const json answer = call["result"]["structuredContent"];
  ASSERT_TRUE(answer.contains("programs")) << call.dump();
  EXPECT_EQ(answer["programs"].size(), 12U);
  EXPECT_EQ(answer["programs"][11]["name"], "train 11");
  EXPECT_EQ(answer["programs_omitted"], 28);
}

TEST(McpTools, UsageIsAskedForByWhatIsChosen) {
  std::string asked;
  const auto source = ServerSource([&](const std::string& target) -> Result<std::string> {
    asked = target;
    if (target == "overview") return R"({"live":false,"from_us":0,"to_us":5000000000})";
    return R"({"gpus":8,"total":{"busy_ns":7,"idle_cost":null},"omitted":3,
               "groups":[{"name":"job 7","idle_cost":null},{"name":"job 8","idle_cost":null}]})";
  });
  Server server(*source);
  const json call =
      json::parse(*server.Handle({.id = "1",
                                  .method = "tools/call",
                                  .params = R"({"name":"gpu_usage","arguments":{"by":"job","limit":1}})"}));
  EXPECT_EQ(asked, "usage?by=job");
  const json answer = call["result"]["structuredContent"];
  EXPECT_EQ(answer["gpus"], 8);
  EXPECT_EQ(answer["groups"], (json{{{"name", "job 7"}}}));
  EXPECT_THAT(answer["cut"], ElementsAre("groups: … 4 more"));
}

class McpSql : public store::MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    source_ = FilesSource(*store_, {}, "memory", {});
  }
  std::unique_ptr<Source> source_;
};

TEST_F(McpSql, RowsBeyondTheLimitAreCounted) {
  const auto text = source_->Query("SELECT range AS n FROM range(264) ; ", 50);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const json found = json::parse(*text);
  EXPECT_EQ(found["columns"], (json{{{"name", "n"}, {"type", "BIGINT"}}}));
  EXPECT_EQ(found["rows"].size(), 50U);
  EXPECT_EQ(found["rows"][49], json::array({49}));
  EXPECT_EQ(found["omitted"]["rows"], 214);
  EXPECT_EQ(found["uncounted"], "");
  EXPECT_EQ(json::parse(*source_->Query("FROM range(1000000000)", 1))["uncounted"], "rows");
}

TEST_F(McpSql, StatementsThatAreNoSubqueryWork) {
  for (const char* sql : {"SHOW TABLES", "DESCRIBE kernels", "explain select 1",
                          "WITH a AS (SELECT 1) FROM a", "SELECT 1 -- the end"})
    EXPECT_TRUE(source_->Query(sql, 10).has_value()) << sql;
  for (const char* sql : {"", ";", "DELETE FROM kernels", "SELECT 1; SELECT 2",
                          "EXPLAIN ANALYZE DELETE FROM kernels", "SELECT 1) ; DROP TABLE kernels; --"})
    EXPECT_FALSE(source_->Query(sql, 10).has_value()) << sql;
}

TEST_F(McpSql, AnEndlessQueryEndsAtItsLimitAndTheNextRuns) {
  {
    const TimeLimit limit(*source_, std::chrono::milliseconds(50));
    const auto endless = source_->Query(
        "WITH RECURSIVE t(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t", 1);
    ASSERT_FALSE(endless.has_value());
    EXPECT_THAT(endless.error().message, HasSubstr("interrupted"));
    EXPECT_TRUE(limit.exceeded());
    EXPECT_FALSE(source_->Query("SELECT 1", 1).has_value()) << "until it is resumed";
  }
  source_->Resume();
  EXPECT_TRUE(source_->Query("SELECT 1", 1).has_value());
}

}  // namespace
}  // namespace gpusonde::mcp
