// SPDX-License-Identifier: Apache-2.0
#include "symbols/python_interpreter.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/fd.h"

namespace gpusonde::symbols {
namespace {

Result<std::optional<PythonInterpreter>> Find(const std::string& path) {
  ASSIGN_OR_RETURN(const Fd fd, Open(path, O_RDONLY));
  return FindPythonInterpreter(fd.get(), path);
}

TEST(PythonInterpreter, DebiansIsFoundInsideItsProgram) {
  const std::string path = "/usr/bin/python3.11";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "Debian 12's python3 is not installed";
  const auto found = Find(path);
  ASSERT_TRUE(found.has_value() && found->has_value());
  const PythonInterpreter& interpreter = **found;
  EXPECT_EQ(interpreter.layout->version, 0x030bu);
  EXPECT_NE(interpreter.runtime, 0u);
  EXPECT_NE(interpreter.code_type, 0u);
  EXPECT_TRUE(interpreter.IsEvaluator(interpreter.evaluators.front().start));
  EXPECT_FALSE(interpreter.IsEvaluator(interpreter.evaluators.front().end));
}

TEST(PythonInterpreter, OtherProgramsHaveNone) {
  const auto found = Find("/proc/self/exe");
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->has_value());
}

TEST(PythonInterpreter, WhatIsNoElfFileIsAnError) {
  EXPECT_EQ(Find("/etc/passwd").error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::symbols
