// SPDX-License-Identifier: Apache-2.0
#include "agent/stack_trim.h"

#include <gtest/gtest.h>

namespace gpusonde::agent {
namespace {

using enum model::DropReason;

int64_t NotReady(const Process& process, gpusonde_python_end end) {
  model::DropCounts drops;
  CountEnds(process, {.python_end = static_cast<uint8_t>(end)}, drops);
  return drops.Of(kPythonNotReady);
}

TEST(CountEnds, AStackIsNotReadyForPythonOnlyWhereAnInterpreterIsMapped) {
  const auto interpreter = std::make_shared<const symbols::PythonInterpreter>();
  Process process;
  EXPECT_EQ(NotReady(process, GPUSONDE_PYTHON_UNKNOWN), 0) << "no Python program";
  process.python = std::make_unique<PythonProcess>(1, interpreter, 0);
  EXPECT_EQ(NotReady(process, GPUSONDE_PYTHON_UNKNOWN), 1);
  EXPECT_EQ(NotReady(process, GPUSONDE_PYTHON_COMPLETE), 0) << "known, and without a frame so far";
}

TEST(CountEnds, EachEndIsCountedUnderItsReason) {
  const Process process;
  model::DropCounts drops;
  for (const auto end : {GPUSONDE_NATIVE_COMPLETE, GPUSONDE_NATIVE_FRAME_POINTERS, GPUSONDE_NATIVE_NO_RULE,
                         GPUSONDE_NATIVE_UNSUPPORTED, GPUSONDE_NATIVE_UNREADABLE})
    CountEnds(process, {.native_end = static_cast<uint8_t>(end)}, drops);
  CountEnds(process, {.python_end = GPUSONDE_PYTHON_UNREADABLE}, drops);
  for (const auto reason :
       {kUnwindNotReady, kUnwindNoRule, kUnwindUnsupported, kUnwindUnreadable, kPythonStackLost})
    EXPECT_EQ(drops.Of(reason), 1) << static_cast<int>(reason);
}

TEST(CountEnds, AStackThatEndsOutsideAllMappingsIsCountedWhereTheUnwinderLacksSome) {
  Process process;
  model::DropCounts drops;
  const auto count = [&] { CountEnds(process, {.native_end = GPUSONDE_NATIVE_NO_MAPPING}, drops); };
  for (uint64_t i = 0; i < GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS; ++i)
    process.mappings.Map({.start = i << 20, .end = (i << 20) + 4096});
  count();
  EXPECT_EQ(drops.Of(kUnwindNoRule), 0);
  process.mappings.Map({.start = uint64_t{1} << 40, .end = (uint64_t{1} << 40) + 4096});
  count();
  EXPECT_EQ(drops.Of(kUnwindNoRule), 1);
}

}  // namespace
}  // namespace gpusonde::agent
