// SPDX-License-Identifier: Apache-2.0
#include "exporters/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpusonde::exporters {
namespace {

using testing::HasSubstr;
using testing::Not;

// 30 ms in inflate, 10 ms in main, of one thread.
model::Profile TwoFunctions() {
  model::Profile profile;
  profile.binaries = {{.name = "libz.so.1", .path = "/lib/libz.so.1", .build_id = "ab"}};
  profile.functions = {{.name = "main"}, {.name = "inflate"}};
  profile.locations = {{.kind = model::FrameKind::kNative, .binary = 0, .lines = {{0, 0}}},
                       {.kind = model::FrameKind::kNative, .binary = 0, .lines = {{1, 0}}}};
  profile.stacks = {{0}, {1, 0}};
  profile.threads = {{.process = {1, 1}, .pid = 7, .tid = 8, .process_name = "train", .name = "loader"}};
  profile.samples = {{.stack = 0, .thread = 0, .count = 1, .weight_ns = 10'000'000},
                     {.stack = 1, .thread = 0, .count = 3, .weight_ns = 30'000'000}};
  return profile;
}

SummaryFacts Facts() {
  return {
      .command = "train.py", .path = "run.sonde", .duration_ns = 80'000'000, .cpus = 2, .sampling_hz = 99};
}

TEST(Summarise, SharesAreOfSelfTimeHottestFirst) {
  const std::string text = Summarise(TwoFunctions(), Facts());
  EXPECT_THAT(text, HasSubstr("0.50 of 2 CPUs busy, 0.04 s in 1 processes and 1 threads (4 samples)"));
  EXPECT_THAT(text, HasSubstr("75.0 %  inflate  (libz.so.1)"));
  EXPECT_LT(text.find("inflate"), text.find("25.0 %  main"));
  EXPECT_THAT(text, HasSubstr("loader (8) 100.0 %"));
}

TEST(Summarise, HasTenLinesAtMostAndEndsWithWhereToGoOn) {
  model::Profile profile = TwoFunctions();
  for (int i = 0; i < 20; ++i) {
    profile.functions.push_back({.name = "f" + std::to_string(i)});
    profile.locations.push_back({.lines = {{i + 2, 0}}});
    profile.stacks.push_back({i + 2});
    profile.samples.push_back({.stack = i + 2, .thread = 0, .count = 1, .weight_ns = 1'000'000});
  }
  SummaryFacts facts = Facts();
  facts.lost = {"12 Samples lost"};
  facts.poorer = {"3 Frames without a name"};
  const std::string text = Summarise(profile, facts);
  EXPECT_LE(std::ranges::count(text, '\n'), 10);
  EXPECT_THAT(text, HasSubstr("dropped   12 Samples lost\n"));
  EXPECT_TRUE(text.ends_with("next      gpusonde view run.sonde\n"));
}

TEST(Summarise, WithoutSamplesItSaysWhy) { EXPECT_THAT(Summarise({}, Facts()), HasSubstr("no samples")); }

TEST(Summarise, NamesFromStrangersCannotWriteToTheTerminal) {
  model::Profile profile = TwoFunctions();
  profile.functions[1].name = "evil\x1b[2J\n";
  EXPECT_THAT(Summarise(profile, Facts()), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace gpusonde::exporters
