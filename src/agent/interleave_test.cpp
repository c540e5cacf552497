// SPDX-License-Identifier: Apache-2.0
#include "agent/interleave.h"

#include <gtest/gtest.h>

#include <string>

namespace gpusonde::agent {
namespace {

constexpr uint32_t kEntry = GPUSONDE_PYTHON_IS_ENTRY;

// Native frames are letters, leaf first, `E` for the evaluation loop; Python frames have code 1, 2, …. In the
// merged stack Python frames are digits and missing frames question marks.
std::string Merge(const std::string& native, const std::vector<gpusonde_python_frame>& python) {
  std::string text;
  for (const MergedFrame& frame :
       Interleave(native.size(), [&](size_t i) { return native[i] == 'E'; }, python))
    switch (frame.kind) {
      case MergedFrame::Kind::kNative:
        text += native[frame.index];
        break;
      case MergedFrame::Kind::kPython:
        text += std::to_string(python[frame.index].code);
        break;
      case MergedFrame::Kind::kMissing:
        text += '?';
        break;
    }
  return text;
}

TEST(Interleave, PythonFramesReplaceTheRunOfTheLoopThatRanThem) {
  // main → loop running 4 → a C function that calls back → loop running 3, which called 2 and 1 without
  // leaving the loop → memcpy.
  EXPECT_EQ(Merge("mEcEs", {{1, 0, 0}, {2, 0, 0}, {3, kEntry, 0}, {4, kEntry, 0}}), "m123c4s");
}

TEST(Interleave, WhereTheNativeStackBreaksOffTheRestFollowsAMissingFrame) {
  EXPECT_EQ(Merge("m", {{1, kEntry, 0}, {2, kEntry, 0}}), "m?12");
  EXPECT_EQ(Merge("mEx", {{1, kEntry, 0}, {2, kEntry, 0}}), "m1x?2");
  EXPECT_EQ(Merge("", {{1, kEntry, 0}}), "?1");
}

TEST(Interleave, ARunWithoutFramesRemovesOnlyItsNativeFrame) {
  EXPECT_EQ(Merge("EcEs", {{0, kEntry, 0}, {1, kEntry, 0}}), "c1s");
}

TEST(Interleave, WithoutPythonFramesTheNativeStackStaysAsItIs) {
  EXPECT_EQ(Merge("mEs", {}), "mEs");
  EXPECT_EQ(Merge("", {}), "");
}

}  // namespace
}  // namespace gpusonde::agent
