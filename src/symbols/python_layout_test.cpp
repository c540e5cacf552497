// SPDX-License-Identifier: Apache-2.0
// The offsets of each CPython that has its headers on this machine, as its own compiler sees them.
#include "symbols/python_layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "base/fd.h"

namespace gpusonde::symbols {
namespace {

constexpr const char* kLayoutSource = R"(
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_runtime.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#define FRAME _PyInterpreterFrame
#else
#include <frameobject.h>
#define FRAME PyFrameObject
#endif
#define TELL(name, value) printf(#name " %zu\n", (size_t)(value))
int main(void) {
#if PY_VERSION_HEX >= 0x030c0000
  TELL(tss_key, offsetof(_PyRuntimeState, autoTSSkey));
  TELL(running_thread, 0);
#else
  TELL(tss_key, offsetof(_PyRuntimeState, gilstate.autoTSSkey));
  TELL(running_thread, offsetof(_PyRuntimeState, gilstate.tstate_current));
#endif
  TELL(thread_id, offsetof(PyThreadState, thread_id));
#if PY_VERSION_HEX >= 0x030d0000
  TELL(thread_frame, offsetof(PyThreadState, current_frame));
  TELL(frame_code, offsetof(FRAME, f_executable));
  TELL(frame_instruction, offsetof(FRAME, instr_ptr));
#elif PY_VERSION_HEX >= 0x030b0000
  TELL(thread_frame, offsetof(PyThreadState, cframe));
  TELL(frame_pointer, offsetof(_PyCFrame, current_frame));
  TELL(frame_code, offsetof(FRAME, f_code));
  TELL(frame_instruction, offsetof(FRAME, prev_instr));
#else
  TELL(thread_frame, offsetof(PyThreadState, frame));
  TELL(frame_code, offsetof(FRAME, f_code));
  TELL(frame_previous, offsetof(FRAME, f_back));
  TELL(frame_instruction, offsetof(FRAME, f_lasti));
#endif
#if PY_VERSION_HEX >= 0x030c0000
  TELL(frame_entry, offsetof(FRAME, owner));
#elif PY_VERSION_HEX >= 0x030b0000
  TELL(frame_entry, offsetof(FRAME, is_entry));
#endif
#if PY_VERSION_HEX >= 0x030b0000
  TELL(frame_previous, offsetof(FRAME, previous));
  TELL(code_bytecode, offsetof(PyCodeObject, co_code_adaptive));
  TELL(code_qualified_name, offsetof(PyCodeObject, co_qualname));
#endif
  TELL(code_first_line, offsetof(PyCodeObject, co_firstlineno));
  TELL(code_name, offsetof(PyCodeObject, co_name));
  TELL(code_file, offsetof(PyCodeObject, co_filename));
#if PY_VERSION_HEX >= 0x030a0000
  TELL(code_lines, offsetof(PyCodeObject, co_linetable));
#else
  TELL(code_lines, offsetof(PyCodeObject, co_lnotab));
#endif
  TELL(ascii_text, sizeof(PyASCIIObject));
  TELL(compact_text, sizeof(PyCompactUnicodeObject));
  return 0;
}
)";

// Of CPython 3.`minor`; nothing when it has no headers for its own parts.
std::optional<std::filesystem::path> Headers(int minor) {
  const std::string name = fmt::format("python3.{}", minor);
  std::vector<std::filesystem::path> candidates = {"/usr/include/" + name};
  if (const char* home = std::getenv("HOME"); home != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::error_code ignored;
    for (const auto& version :
         std::filesystem::directory_iterator(std::string(home) + "/.pyenv/versions", ignored))
      candidates.push_back(version.path() / "include" / name);
  }
  for (const std::filesystem::path& candidate : candidates)
    if (std::filesystem::exists(candidate / "internal/pycore_runtime.h")) return candidate;
  return std::nullopt;
}

std::map<std::string, uint32_t> Offsets(const std::filesystem::path& headers) {
  std::string folder = testing::TempDir() + "layout-XXXXXX";
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  EXPECT_TRUE(WriteFileAtomically(folder + "/offsets.c", kLayoutSource).has_value());
  const std::string command =
      fmt::format("cd {} && cc -w -I{} offsets.c -o offsets && ./offsets > told", folder, headers.string());
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  std::istringstream told(ReadFile(folder + "/told", 1 << 16).value_or(""));
  std::map<std::string, uint32_t> offsets;
  std::string name;
  for (uint32_t value = 0; told >> name >> value;) offsets[name] = value;
  std::filesystem::remove_all(folder);
  return offsets;
}

class PythonLayoutTest : public testing::TestWithParam<int> {};

TEST_P(PythonLayoutTest, IsWhatTheHeadersSay) {
  const auto headers = Headers(GetParam());
  if (!headers.has_value()) GTEST_SKIP() << "CPython 3." << GetParam() << " has no headers here";
  const PythonLayout* layout = FindPythonLayout(0x0300u + static_cast<uint32_t>(GetParam()));
  ASSERT_NE(layout, nullptr);
  const gpusonde_python_layout& walk = layout->walk;
  const std::map<std::string, uint32_t> ours = {{"tss_key", walk.tss_key},
                                                {"running_thread", walk.running_thread},
                                                {"thread_id", walk.thread_id},
                                                {"thread_frame", walk.thread_frame},
                                                {"frame_pointer", walk.frame_pointer},
                                                {"frame_code", walk.frame_code},
                                                {"frame_previous", walk.frame_previous},
                                                {"frame_instruction", walk.frame_instruction},
                                                {"frame_entry", walk.frame_entry},
                                                {"code_first_line", walk.code_first_line},
                                                {"code_name", walk.code_name},
                                                {"code_bytecode", walk.code_bytecode},
                                                {"code_file", walk.code_file},
                                                {"code_qualified_name", layout->code_qualified_name},
                                                {"code_lines", layout->code_lines},
                                                {"ascii_text", layout->ascii_text},
                                                {"compact_text", layout->compact_text}};
  const std::map<std::string, uint32_t> told = Offsets(*headers);
  ASSERT_GE(told.size(), 12u);
  for (const auto& [name, offset] : told) EXPECT_EQ(ours.at(name), offset) << name;
  EXPECT_GT(walk.frame_bytes, walk.frame_instruction);
  EXPECT_GT(walk.frame_bytes, walk.frame_entry);
  EXPECT_LE(walk.frame_bytes, GPUSONDE_PYTHON_FRAME_BYTES);
}

INSTANTIATE_TEST_SUITE_P(EveryVersion, PythonLayoutTest, testing::Values(9, 10, 11, 12, 13));

}  // namespace
}  // namespace gpusonde::symbols
