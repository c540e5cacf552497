// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "exporters/exporter.h"
#include "exporters/sample_profile.h"

// speedscope itself opens the same files in tests/e2e/speedscope.
namespace gpusonde::exporters {
namespace {

using Json = nlohmann::json;

class Speedscope : public testing::Test {
 protected:
  // The names of stack `index` of profile `profile`, root first.
  std::vector<std::string> Names(size_t profile, size_t index) const {
    std::vector<std::string> names;
    for (const size_t frame : file_["profiles"][profile]["samples"][index])
      names.push_back(file_["shared"]["frames"][frame]["name"]);
    return names;
  }

  Json file_ = Json::parse(kSpeedscope.render(SampleProfile(), {.title = "run"}).value());
};

TEST_F(Speedscope, EverythingComesFirstThenEachThread) {
  std::vector<std::string> names;
  for (const Json& profile : file_["profiles"]) names.push_back(profile["name"]);
  EXPECT_THAT(
      names, testing::ElementsAre("run", "train (pid 411) / train (tid 411)",
                                  "train (pid 411) / loader (tid 412)", "train (pid 500) / train (tid 500)"));
}

TEST_F(Speedscope, EveryStackHasAWeightAndTheWeightsAddUpToTheEnd) {
  int64_t threads_ns = 0;
  for (const Json& profile : file_["profiles"]) {
    EXPECT_EQ(profile["unit"], "nanoseconds");
    EXPECT_EQ(profile["samples"].size(), profile["weights"].size());
    int64_t total_ns = 0;
    for (const int64_t weight_ns : profile["weights"]) total_ns += weight_ns;
    EXPECT_EQ(profile["endValue"], total_ns);
    threads_ns += total_ns;
  }
  EXPECT_EQ(file_["profiles"][0]["endValue"], 600'000'000);
  EXPECT_EQ(threads_ns, 2 * 600'000'000);  // everything, and every thread once
}

TEST_F(Speedscope, StacksAreRootFirstWithInlinedFunctionsInTheirPlace) {
  EXPECT_THAT(Names(2, 0), testing::ElementsAre("main", "load_batch(int)", "copy_bytes", "inflate"));
  EXPECT_EQ(file_["profiles"][2]["weights"][0], 200'000'000);
}

TEST_F(Speedscope, FramesAreSharedAndHaveTheirSourceElseTheirBinary) {
  std::map<std::string, Json> frames;
  for (const Json& frame : file_["shared"]["frames"]) {
    EXPECT_FALSE(frames.contains(frame["name"])) << frame;
    frames[frame["name"]] = frame;
  }
  EXPECT_EQ(frames["copy_bytes"]["file"], "train.cpp");
  EXPECT_EQ(frames["copy_bytes"]["line"], 40);
  EXPECT_EQ(frames["inflate"]["file"], "/usr/lib/libz.so.1");
  EXPECT_EQ(frames["vfs_read"]["file"], "[kernel]");
  EXPECT_FALSE(frames["[unknown]"].contains("file"));
  EXPECT_TRUE(frames.contains("a;b\nc\xEF\xBF\xBD"));
}

}  // namespace
}  // namespace gpusonde::exporters
