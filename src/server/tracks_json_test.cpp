// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/api.h"
#include "server/testing/fake_data.h"

namespace gpusonde::server {
namespace {

using nlohmann::json;

constexpr Id128 kAny{0x0123456789abcdef, 0xfedcba9876543210};

class TracksApiTest : public testing::Test {
 protected:
  using Query = std::vector<std::pair<std::string, std::string>>;

  json Get(const std::string& path, const Query& query = {}) {
    const HttpResponse response =
        ApiHandler(data_, {.mode = "view"})({.path = "/api/v1/" + path, .query = query});
    EXPECT_EQ(response.status, 200) << *response.body;
    return json::parse(*response.body);
  }
  // "status code: message" of an error.
  std::string Error(const std::string& path, const Query& query = {}) {
    const HttpResponse response =
        ApiHandler(data_, {.mode = "view"})({.path = "/api/v1/" + path, .query = query});
    const json error = json::parse(*response.body)["error"];
    return std::to_string(response.status) + " " + error["code"].get<std::string>() + ": " +
           error["message"].get<std::string>();
  }

  FakeData data_;
};

TEST_F(TracksApiTest, ATimelineHasColumnsOfSlices) {
  store::Tracks tracks{.grid = {{1763687000000000'500, 1763687000100000'500}, 65536},
                       .events = 6,
                       .names = {{store::EventKind::kKernel, "gemm"}, {store::EventKind::kState, "running"}},
                       .devices = {{.device = kAny, .ordinal = 0, .name = "H100", .simulated = true}},
                       .processes = {{.process = kAny, .pid = 411, .name = "train", .command = "train.py"}},
                       .omitted = 3};
  store::Track stream{.kind = store::TrackKind::kStream, .process = kAny, .device = kAny, .stream = 7};
  stream.slices = {{1763687000000000'000, 100'000, 0, 0, 1, 100'000},
                   {1763687000000200'000, 900, 0, 0, 4, 800}};
  store::Track states{.kind = store::TrackKind::kStates, .process = kAny, .tid = 412, .thread = "main"};
  states.slices = {{1763687000000000'000, 100'000, 0, 1, 1, 100'000}};
  tracks.tracks = {stream, states};
  tracks.users = {{kAny, kAny, {{1763687000000001'000, 1763687000000005'000}}}};
  data_.tracks = tracks;
  const json timeline =
      Get("timeline", {{"columns", "2000"}, {"helper_threads", "1"}, {"from_us", "5"}, {"to_us", "9"}});
  EXPECT_EQ(data_.tracks_options.columns, 2000);
  EXPECT_TRUE(data_.tracks_options.helper_threads);
  EXPECT_EQ(data_.selection.from_ns, 5000);
  EXPECT_EQ(timeline["from_us"], 1763687000000000);
  EXPECT_EQ(timeline["to_us"], 1763687000100001);
  EXPECT_EQ(timeline["names"][1]["kind"], "state_running");
  EXPECT_EQ(timeline["devices"][0]["label"], "GPU 0");
  const json& first = timeline["tracks"][0];
  EXPECT_EQ(first["stream"], 7);
  EXPECT_EQ(first["slices"],
            json::parse(R"({"start":[0,200000],"length":[100000,900],"name":[0,0],"count":[1,4],
                                             "busy":[100000,800]})"));
  EXPECT_FALSE(first.contains("tid"));
  EXPECT_EQ(timeline["tracks"][1]["slices"], json::parse(R"({"start":[0],"length":[100000],"name":[1]})"));
  EXPECT_EQ(timeline["gpu_users"][0]["observed"], json::parse(R"({"start":[1000],"length":[4000]})"));
  EXPECT_EQ(timeline["omitted_tracks"], 3);

  EXPECT_THAT(Error("timeline", {{"filter", "x"}}), testing::HasSubstr("400 invalid_argument"));
  EXPECT_THAT(Error("timeline", {{"columns", "0"}}), testing::HasSubstr("columns"));
  data_.tracks = Fail(ErrorCode::kInvalidArgument, "this time holds 30 million events");
  EXPECT_EQ(Error("timeline"), "400 invalid_argument: this time holds 30 million events");
}

TEST_F(TracksApiTest, WorkHasItsLaunch) {
  const Query query = {{"process", kAny.ToHex()},
                       {"device", kAny.ToHex()},
                       {"stream", "7"},
                       {"start_ns", "1763687000000000123"}};
  EXPECT_THAT(Error("work", query), testing::StartsWith("404 not_found: no work of that process started"));
  model::GpuWork kernel{
      .correlation = 5, .start_ns = 1763687000000000'123, .end_ns = 1763687000000005'123, .name = "gemm"};
  kernel.grid = {1, 2, 3};
  data_.work = {.work = kernel,
                .launch = store::Launch{.name = "cudaLaunchKernel",
                                        .tid = 412,
                                        .thread = "main",
                                        .start_ns = 1763687000000000'023,
                                        .end_ns = 1763687000000000'093,
                                        .stack = {"main", "step"}}};
  const json answer = Get("work", query);
  EXPECT_EQ(data_.place.stream, 7);
  EXPECT_EQ(data_.place.start_ns, 1763687000000000123);
  EXPECT_EQ(answer["work"]["start_ns"], "1763687000000000123") << "exact where numbers aren't";
  EXPECT_EQ(answer["work"]["duration_ns"], 5000);
  EXPECT_EQ(answer["work"]["grid"], json::parse("[1,2,3]"));
  EXPECT_TRUE(answer["work"]["registers"].is_null());
  EXPECT_EQ(answer["launch"]["before_ns"], 100);
  EXPECT_EQ(answer["launch"]["stack"], json::parse(R"(["main","step"])"));
  EXPECT_THAT(Error("work", {{"stream", "7"}}), testing::HasSubstr("give all four"));

  model::GpuWork copy{
      .kind = model::GpuWork::Kind::kMemcpy, .bytes = 4096, .copy = "htod", .source_memory = "pageable"};
  data_.work = {.work = copy};
  const json copied = Get("work", query);
  EXPECT_EQ(copied["work"]["name"], "htod");
  EXPECT_EQ(copied["work"]["bytes"], 4096);
  EXPECT_FALSE(copied["work"].contains("grid"));
  EXPECT_TRUE(copied["launch"].is_null());
}

}  // namespace
}  // namespace gpusonde::server
