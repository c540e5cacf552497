// SPDX-License-Identifier: Apache-2.0
#include "symbols/python_interpreter.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

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

// A library whose full table alone names this runtime of an interpreter, behind a name of this length.
std::string Library(const std::string& folder, size_t name_before, const std::string& runtime) {
  std::string source = ".data\n" + std::string(name_before, 'x') + ": .long 1\n";
  source += runtime + ": .long 1\n.text\n_PyEval_EvalFrameDefault: ret\n";
  source += ".size _PyEval_EvalFrameDefault, 1\n";
  EXPECT_TRUE(WriteFileAtomically(folder + "/python.s", source).has_value());
  const std::string command =
      "cd " + folder + " && as python.s -o python.o && ld -shared python.o -o python.so";
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  return folder + "/python.so";
}

TEST(PythonInterpreter, ItsNameIsFoundWhereverItLiesAmongTheOthers) {
  std::string folder = testing::TempDir() + "python-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  // Names are read in pieces of 128 KiB: it lies before, across and behind the end of one.
  for (size_t name_before = (128 << 10) - 32; name_before < (128 << 10) + 8; ++name_before)
    EXPECT_EQ(Find(Library(folder, name_before, "_PyRuntime")).error().code, ErrorCode::kUnsupported)
        << "found, and of no known version: " << name_before;
  std::filesystem::remove_all(folder);
}

// CPython 2.7 to 3.6, whose frames nobody reads, are named rather than passed over.
TEST(PythonInterpreter, OneBeforeTheRuntimeStructIsNamed) {
  std::string folder = testing::TempDir() + "python-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto found = Find(Library(folder, 8, "_PyThreadState_Current"));
  ASSERT_FALSE(found.has_value());
  EXPECT_TRUE(found.error().message.contains("no Python frames of a CPython before 3.7"))
      << found.error().message;
  std::filesystem::remove_all(folder);
}

TEST(PythonInterpreter, WhatIsNoElfFileIsAnError) {
  EXPECT_EQ(Find("/etc/passwd").error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::symbols
