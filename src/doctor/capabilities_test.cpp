// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "doctor/probes.h"

namespace gpusonde::doctor {
namespace {

TEST(Capabilities, AreSortedByName) {
  EXPECT_TRUE(std::ranges::is_sorted(AllCapabilities(), std::ranges::less_equal{}, &Capability::name));
}

TEST(Capabilities, EveryFindingSaysWhyAndWhatToDoWhenItFails) {
  for (const Capability& capability : AllCapabilities()) {
    const Finding finding = capability.probe({.state_folder = "/nonexistent"});
    EXPECT_FALSE(finding.why.empty()) << capability.name;
    EXPECT_NE(finding.works, !finding.what_to_do.empty()) << capability.name;
  }
}

TEST(StateFolder, IsJudgedByTheNearestExistingFolder) {
  const std::string here = testing::TempDir();
  const Finding finding = ProbeStateFolder({.state_folder = here + "/a/b"});
  EXPECT_THAT(finding.why, testing::HasSubstr("(for " + here + "/a/b, not created yet)"));
}

TEST(StateFolder, ThatCannotBeWrittenFails) {
  // Root may write anywhere, but nobody can create files in /proc.
  const Finding finding = ProbeStateFolder({.state_folder = "/proc/gpusonde"});
  EXPECT_FALSE(finding.works);
  EXPECT_THAT(finding.what_to_do, testing::HasSubstr("--state"));
}

TEST(StateFolder, IsLeftAsItWas) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "gpusonde_state_folder_test";
  std::filesystem::create_directories(folder);
  EXPECT_FALSE(ProbeStateFolder({.state_folder = folder.string()}).why.empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace gpusonde::doctor
