// SPDX-License-Identifier: Apache-2.0
#include "inject/step_marks.h"

#include <gtest/gtest.h>

#include <memory>

namespace gpusonde::inject {
namespace {

constexpr uint64_t kWindowNs = 2'000'000'000;
constexpr uint64_t kStepNs = 100'000'000;

// A window of steps of 10 kernels named 1, 1, …, 2; name 3 runs once a window.
StepMarks::Window RunWindow(StepMarks& marks, uint64_t begin_ns, uint64_t& number, uint64_t counted = 1) {
  marks.BeginWindow(begin_ns, kWindowNs);
  marks.Add(1, 3, static_cast<int64_t>(number += counted), begin_ns + 1);
  for (uint64_t step_ns = begin_ns; step_ns < begin_ns + kWindowNs; step_ns += kStepNs)
    for (uint32_t kernel = 0; kernel < 10; ++kernel)
      marks.Add(1, kernel == 9 ? 2 : 1, static_cast<int64_t>(number += counted),
                step_ns + uint64_t{1000} * (kernel + 1));
  return marks.EndWindow();
}

TEST(StepMarks, AreOfTheKernelThatRunsOnceAStep) {
  const auto marks = std::make_unique<StepMarks>();
  uint64_t number = 0;
  const StepMarks::Window first = RunWindow(*marks, kStepNs, number);
  EXPECT_EQ(first.first.time_ns, 0U) << "chosen by the first window";
  EXPECT_EQ(first.runs, 20U);
  const uint64_t before = number;
  const uint64_t begin_ns = 10 * kWindowNs;
  const StepMarks::Window window = RunWindow(*marks, begin_ns, number);
  EXPECT_EQ(window.first.time_ns, begin_ns + 10'000);
  EXPECT_EQ(window.first.number, before + 11);
  EXPECT_EQ(window.middle.time_ns, begin_ns + kWindowNs / 2 + 10'000);
  EXPECT_EQ(window.middle.number, before + 111);
  EXPECT_EQ(window.last.time_ns, begin_ns + kWindowNs - kStepNs + 10'000);
  EXPECT_EQ(window.last.number, before + 201);
  EXPECT_EQ(window.runs, 20U);
}

TEST(StepMarks, DontDependOnTheOrderOfRecords) {
  const auto marks = std::make_unique<StepMarks>();
  uint64_t number = 0;
  RunWindow(*marks, kStepNs, number);
  marks->BeginWindow(1'000'000, 1'000'000);
  for (const int64_t at : {7, 3, 9, 1, 5, 0, 8, 2, 6, 4})
    marks->Add(1, 2, 1000 + at, 1'000'000 + static_cast<uint64_t>(at) * 100'000);
  const StepMarks::Window window = marks->EndWindow();
  EXPECT_EQ(window.first.number, 1000U);
  EXPECT_EQ(window.middle.number, 1005U);
  EXPECT_EQ(window.last.number, 1009U);
}

// All numbers the same, or two for each kernel and more: not the count of kernels.
TEST(StepMarks, AreNoneWhereNumbersDontCountKernels) {
  for (const uint64_t counted : {0, 3}) {
    const auto marks = std::make_unique<StepMarks>();
    uint64_t number = 1;
    RunWindow(*marks, kStepNs, number, counted);
    EXPECT_EQ(RunWindow(*marks, 10 * kWindowNs, number, counted).last.time_ns, 0U) << counted;
  }
}

TEST(StepMarks, AreOfAnotherKernelWhereTheirsIsGone) {
  const auto marks = std::make_unique<StepMarks>();
  uint64_t number = 0;
  RunWindow(*marks, kStepNs, number);
  const auto run = [&](uint64_t begin_ns) {
    marks->BeginWindow(begin_ns, kWindowNs);
    for (uint64_t i = 0; i < 20; ++i)
      marks->Add(2, 7, static_cast<int64_t>(++number), begin_ns + i * kStepNs);
    return marks->EndWindow();
  };
  EXPECT_EQ(run(10 * kWindowNs).first.time_ns, 0U);
  EXPECT_EQ(run(20 * kWindowNs).first.time_ns, 20 * kWindowNs);
}

TEST(StepMarks, LeaveOutKernelsWithoutNumberOrTime) {
  const auto marks = std::make_unique<StepMarks>();
  uint64_t number = 0;
  RunWindow(*marks, kStepNs, number);
  marks->BeginWindow(1000, 1000);
  for (int i = 0; i < 20; ++i) {
    marks->Add(1, 2, 0, 1500);   // of a graph
    marks->Add(1, 2, -7, 1500);  // launched by a kernel
    marks->Add(1, 2, i + 1, 0);
  }
  EXPECT_EQ(marks->EndWindow().first.time_ns, 0U);
}

}  // namespace
}  // namespace gpusonde::inject
