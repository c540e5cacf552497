// SPDX-License-Identifier: Apache-2.0
#include "base/program_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace gpusonde {
namespace {

namespace fs = std::filesystem;

TEST(ProgramFile, IsTheProgramThatTheKernelStarted) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  EXPECT_EQ(ProgramFile().value(), program.string());
  EXPECT_EQ(InstallFolder().value(), program.parent_path().parent_path().string());
}

// Starts it like the package's launcher; the child runs the test above with the loader as /proc/self/exe.
TEST(ProgramFile, IsTheProgramAndNotTheLoaderThatRunsIt) {
  const std::string program = fs::read_symlink("/proc/self/exe");
  if (program.find("ld-linux") != std::string::npos) {
    std::printf("%s\n", ProgramFile().value().c_str());
    std::exit(0);
  }
  const std::string command =
      "/lib64/ld-linux-x86-64.so.2 '" + program +
      "' --gtest_filter=ProgramFile.IsTheProgramAndNotTheLoaderThatRunsIt | tail -n 1";
  FILE* child = ::popen(command.c_str(), "r");
  ASSERT_NE(child, nullptr);
  char line[4096] = {};
  ASSERT_NE(std::fgets(line, sizeof line, child), nullptr);
  EXPECT_EQ(::pclose(child), 0);
  EXPECT_EQ(std::string(line), program + "\n");
}

}  // namespace
}  // namespace gpusonde
