// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
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

TEST(StateFolder, AFileInItsPlaceFails) {
  const TempFolder folder;
  const std::string file = folder.path() + "/state";
  std::ofstream(file) << "x";
  for (const std::string& state_folder : {file, file + "/below"}) {
    const Finding finding = ProbeStateFolder({.state_folder = state_folder});
    EXPECT_FALSE(finding.works);
    EXPECT_EQ(finding.why, file + " is not a folder");
  }
}

TEST(GpuProcesses, APipeInThePlaceOfALibraryIsNotOpened) {
  const TempFolder folder;
  const auto map = [&](const std::string& name) {
    const Fd file = *Open(folder / name, O_RDWR | O_CREAT);
    EXPECT_EQ(::ftruncate(file.get(), 4096), 0);
    void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
    EXPECT_NE(memory, MAP_FAILED);
    return memory;
  };
  void* const driver = map("libcuda.so.1");
  void* const library = map("libgpusonde-inject.so");
  std::filesystem::remove(folder / "libgpusonde-inject.so");
  // As /proc/PID/maps calls it now.
  ASSERT_EQ(::mkfifo((folder / "libgpusonde-inject.so (deleted)").c_str(), 0600), 0);
  ::alarm(60);  // if the probe waits for a writer
  EXPECT_FALSE(ProbeGpuProcesses({}).works);
  ::alarm(0);
  ::munmap(driver, 4096);
  ::munmap(library, 4096);
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
