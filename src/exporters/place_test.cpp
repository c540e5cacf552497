// SPDX-License-Identifier: Apache-2.0
#include "exporters/place.h"

#include <gtest/gtest.h>

namespace gpusonde::exporters {
namespace {

// With a real driver, which is stripped, the first known lines are those of our own library.
TEST(PlaceOf, GpuTimeIsTheProgramsNotTheDriversOrOurs) {
  using enum model::FrameKind;
  model::Profile profile;
  profile.type = model::ProfileType::kGpu;
  profile.binaries = {{.name = "libgpusonde-inject.so"},
                      {.name = "libcuda.so.535.104"},
                      {.name = "libcudart.so.12"},
                      {.name = "train"}};
  profile.functions = {{.name = "gemm"},
                       {.name = "LeaveCall", .file = "calls.cpp"},
                       {.name = "[libcuda.so.535.104+0x1200]"},
                       {.name = "cudaLaunchKernel", .file = "cudart.cpp"},
                       {.name = "forward", .file = "/home/a/train.cpp"},
                       {.name = "main"}};
  profile.locations = {{.kind = kGpu, .lines = {{0, 0}}},
                       {.kind = kNative, .binary = 0, .lines = {{1, 77}}},
                       {.kind = kNative, .binary = 1, .lines = {{2, 0}}},
                       {.kind = kNative, .binary = 2, .lines = {{3, 12}}},
                       {.kind = kNative, .binary = 3, .lines = {{4, 21}}},
                       {.kind = kNative, .binary = 3, .lines = {{5, 0}}}};
  EXPECT_EQ(PlaceOf(profile, {0, 1, 2, 3, 4, 5})->name, "train.cpp:21 forward");
  EXPECT_EQ(PlaceOf(profile, {0, 1, 2, 3, 5})->name, "main (train)") << "without debug information";
  EXPECT_FALSE(PlaceOf(profile, {0, 1, 2, 3}).has_value()) << "nobody's";
}

TEST(PlaceOf, GpuTimeOfAGoProgramIsNotItsRuntimes) {
  using enum model::FrameKind;
  model::Profile profile;
  profile.binaries = {{.name = "server"}};
  profile.functions = {{.name = "runtime.asmcgocall.abi0", .file = "/usr/lib/go/src/runtime/asm_amd64.s"},
                       {.name = "main._Cfunc_launch.abi0", .file = "_cgo_gotypes.go"},
                       {.name = "main.main", .file = "/home/a/main.go"}};
  for (int32_t i = 0; i < 3; ++i)
    profile.locations.push_back({.kind = kNative, .binary = 0, .lines = {{i, 41 + i}}});
  EXPECT_EQ(PlaceOf(profile, {0, 1, 2})->name, "main.go:43 main.main");
  EXPECT_EQ(PlaceOf(profile, {0})->name, "asm_amd64.s:41 runtime.asmcgocall.abi0") << "better than nothing";
}

// PyTorch's profiler names calls without a library, and Python functions by their file and first line.
TEST(PlaceOf, GpuTimeOfATraceIsThePythonFunctionsOrTheOperators) {
  using enum model::FrameKind;
  model::Profile profile;
  profile.functions = {{.name = "gemm"},
                       {.name = "cudaLaunchKernelExC"},
                       {.name = "aten::addmm"},
                       {.name = "<built-in function linear>"},
                       {.name = "forward", .file = "torch/nn/modules/linear.py"},
                       {.name = "forward", .file = "transformers/models/qwen2/modeling_qwen2.py"},
                       {.name = "call", .file = "/tmp/torchinductor_user/dn/cdnigg.py"}};
  profile.locations = {{.kind = kGpu, .lines = {{0, 0}}},    {.kind = kNative, .lines = {{1, 0}}},
                       {.kind = kNative, .lines = {{2, 0}}}, {.kind = kPython, .lines = {{3, 0}}},
                       {.kind = kPython, .lines = {{4, 0}}}, {.kind = kPython, .lines = {{5, 0}}},
                       {.kind = kPython, .lines = {{6, 0}}}};
  EXPECT_EQ(PlaceOf(profile, {0, 1, 2, 3, 4, 5})->name, "modeling_qwen2.py forward");
  EXPECT_EQ(PlaceOf(profile, {0, 1, 2, 3, 4})->name, "linear.py forward");
  EXPECT_EQ(PlaceOf(profile, {0, 1, 6, 5})->name, "modeling_qwen2.py forward")
      << "not what the compiler wrote";
  EXPECT_EQ(PlaceOf(profile, {0, 1, 2})->name, "aten::addmm") << "without with_stack";
  EXPECT_FALSE(PlaceOf(profile, {0, 1}).has_value());
}

TEST(PlaceOf, APythonModulesFileIsNamedOnce) {
  model::Profile profile;
  profile.functions = {{.name = "<module> train.py", .system_name = "<module>", .file = "/home/a/train.py"}};
  profile.locations = {{.kind = model::FrameKind::kPython, .lines = {{0, 7}}}};
  EXPECT_EQ(PlaceOf(profile, {0})->name, "train.py:7 <module>");
}

}  // namespace
}  // namespace gpusonde::exporters
