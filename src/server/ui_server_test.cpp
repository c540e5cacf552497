// SPDX-License-Identifier: Apache-2.0
#include "server/ui_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/binaries.h"
#include "model/tables/functions.h"
#include "model/tables/locations.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/threads.h"
#include "server/testing/http_client.h"
#include "spool/spool.h"
#include "store/recordings/recording.h"

namespace gpusonde::server {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int64_t kStart = 1'763'687'000 * kNanosPerSecond;
constexpr Id128 kSource{1, 1};
constexpr Id128 kShownProcess{2, 2};
constexpr Id128 kBinary{3, 3};
constexpr Id128 kMain{4, 4};
constexpr Id128 kStep{5, 5};

template <class Table>
void Append(spool::Writer& spool, const Table& table, std::initializer_list<typename Table::Row> rows) {
  model::BatchBuilder builder(table);
  for (const typename Table::Row& row : rows) builder.Append(row);
  const auto appended = spool.Append(builder.Take());
  ASSERT_TRUE(appended.has_value()) << appended.error().message;
}

// Two seconds of a program: three samples in main → step, one in main.
void WriteSpool(const std::string& folder) {
  auto spool = spool::Writer::Open(folder);
  ASSERT_TRUE(spool.has_value()) << spool.error().message;
  Append(*spool, model::kSources,
         {{.source = kSource,
           .kind = model::SourceKind::kRecord,
           .host = "vm",
           .cpus = 2,
           .sampling_hz = 2,
           .started_ns = kStart,
           .ended_ns = kStart + 2 * kNanosPerSecond}});
  Append(*spool, model::kProcesses,
         {{.process = kShownProcess, .source = kSource, .pid = 411, .name = "train", .started_ns = kStart}});
  Append(*spool, model::kThreads, {{.process = kShownProcess, .tid = 411, .name = "train"}});
  Append(*spool, model::kBinaries, {{.binary = kBinary, .path = "/opt/train", .name = "train"}});
  Append(*spool, model::kFunctions,
         {{.function = kMain, .name = "main", .system_name = "main"},
          {.function = kStep, .name = "step", .system_name = "step"}});
  Append(*spool, model::kLocations,
         {{.location = {6, 1},
           .kind = model::FrameKind::kNative,
           .binary = kBinary,
           .address = 16,
           .functions = {kMain},
           .lines = {7}},
          {.location = {6, 2},
           .kind = model::FrameKind::kNative,
           .binary = kBinary,
           .address = 32,
           .functions = {kStep},
           .lines = {9}}});
  Append(*spool, model::kStacks,
         {{.stack = {7, 1}, .locations = {{6, 1}}}, {.stack = {7, 2}, .locations = {{6, 2}, {6, 1}}}});
  for (int i = 0; i < 4; ++i)
    Append(*spool, model::kSamples,
           {{.time_ns = kStart + i * kNanosPerSecond / 2,
             .process = kShownProcess,
             .tid = 411,
             .stack = {7, i == 0 ? 1u : 2u},
             .weight_ns = kNanosPerSecond / 2}});
  ASSERT_TRUE(spool->Sync().has_value());
}

class UiServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "web");
    ASSERT_TRUE(WriteFileAtomically(folder_ / "web/index.html", "the page").has_value());
    ::setenv("GPUSONDE_WEB", (folder_ / "web").c_str(), 1);
    ASSERT_NO_FATAL_FAILURE(WriteSpool(folder_ / "spool"));
    const auto written = store::WriteRecording(folder_ / "spool", folder_ / "run.sonde");
    ASSERT_TRUE(written.has_value()) << written.error().message;
    auto store = store::OpenRecordings({folder_ / "run.sonde"});
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = *std::move(store);
  }

  std::unique_ptr<UiServer> Start(const std::optional<ListenAddress>& listen = ListenAddress{}) {
    auto server = UiServer::Start(*store_, {.mode = "view", .title = "run.sonde"}, listen);
    EXPECT_TRUE(server.has_value()) << server.error().message;
    return *std::move(server);
  }
  static uint16_t PortOf(const UiServer& server) {
    const std::string url = server.Url();
    return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }

  TempFolder folder_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(UiServerTest, ARecordingIsServedAsWritten) {
  const auto server = Start();
  HttpClient client(PortOf(*server));
  EXPECT_EQ(client.Get("/").body, "the page");

  const json overview = json::parse(client.Get("/api/v1/overview").body);
  EXPECT_EQ(overview["samples"], 4);
  EXPECT_EQ(overview["from_us"], kStart / 1000);
  EXPECT_EQ(overview["cpus"], 2);
  EXPECT_EQ(overview["title"], "run.sonde");

  const json processes = json::parse(client.Get("/api/v1/processes").body)["processes"];
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0]["id"], kShownProcess.ToHex());
  EXPECT_EQ(processes[0]["cpu_ns"], 2 * kNanosPerSecond);
  EXPECT_EQ(processes[0]["threads"][0]["tid"], 411);

  const json strips = json::parse(client.Get("/api/v1/strips?buckets=2").body);
  EXPECT_EQ(strips["strips"][0]["values"].size(), 2u);
  EXPECT_EQ(strips["strips"][0]["max"], 2.0);

  const json graph = json::parse(client.Get("/api/v1/flamegraph?type=cpu").body);
  EXPECT_EQ(graph["strings"], json({"", "main", "step"}));
  EXPECT_EQ(graph["nodes"]["total"], json({2'000'000'000, 2'000'000'000, 1'500'000'000}));
  EXPECT_EQ(graph["samples"], 4);
}

TEST_F(UiServerTest, TheSelectionReachesTheData) {
  const auto server = Start();
  HttpClient client(PortOf(*server));
  const auto total = [&client](const std::string& selection) {
    return json::parse(client.Get("/api/v1/flamegraph?" + selection).body)["total"].get<int64_t>();
  };
  const std::string process = "process=" + kShownProcess.ToHex();
  EXPECT_EQ(total("to_us=" + std::to_string(kStart / 1000 + 500'000)), 500'000'000);
  EXPECT_EQ(total(process + "&tid=411"), 2'000'000'000);
  EXPECT_EQ(total(process + "&tid=412"), 0);
  EXPECT_EQ(total("process=" + kSource.ToHex()), 0);
  EXPECT_EQ(total("filter=STE"), 1'500'000'000);
  EXPECT_EQ(total("filter=%25"), 0) << "a wildcard of SQL is only itself";
}

TEST_F(UiServerTest, TheNextFreePortIsUsedAndReported) {
  const auto first = Start(std::nullopt);
  const auto second = Start(std::nullopt);
  EXPECT_NE(first->Url(), second->Url());
  EXPECT_THAT(second->remark(), HasSubstr("port 7171 is in use"));
  EXPECT_THAT(second->remark(), HasSubstr(std::to_string(PortOf(*second))));
}

TEST_F(UiServerTest, ReachableFromOtherMachinesItSaysSo) {
  const auto server = Start(ListenAddress{"0.0.0.0", 0});
  EXPECT_THAT(server->remark(), HasSubstr("anyone who can reach 0.0.0.0:"));
  EXPECT_THAT(server->Url(), HasSubstr("http://127.0.0.1:"));
}

TEST_F(UiServerTest, ANamedPortInUseIsAnError) {
  const auto first = Start();
  const auto second = UiServer::Start(*store_, {}, ListenAddress{"127.0.0.1", PortOf(*first)});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpusonde::server
