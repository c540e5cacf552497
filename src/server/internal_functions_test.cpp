// SPDX-License-Identifier: Apache-2.0
#include "server/internal_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::server {
namespace {

using model::FrameKind;
using model::Profile;
using testing::ElementsAre;

bool IsInternalNative(std::string_view name, std::string_view binary = "train") {
  return IsInternal({.name = name, .kind = FrameKind::kNative}, binary);
}

bool IsInternalPython(std::string_view name, std::string_view file) {
  return IsInternal({.name = name, .kind = FrameKind::kPython, .file = file}, "");
}

TEST(InternalFunctions, StartProcessesAndThreads) {
  for (const std::string_view name :
       {"_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "start_thread",
        "clone", "clone3", "__clone3"})
    EXPECT_TRUE(IsInternalNative(name)) << name;
  for (const std::string_view name : {"", "start", "_start2", "my::clone", "main"})
    EXPECT_FALSE(IsInternalNative(name)) << name;
}

TEST(InternalFunctions, AreAllOfTheInterpreterAndOfCudaLibraries) {
  for (const std::string_view binary :
       {"python3.11", "python3", "libpython3.11.so.1.0", "libffi.so.8",
        "_ctypes.cpython-311-x86_64-linux-gnu.so", "ld-linux-x86-64.so.2", "libgpusonde-inject.so",
        "libcuda.so.570.124", "libcudart.so.12", "libcupti.so.12", "libnvrtc.so.12",
        "libnvidia-ptxjitcompiler.so.1", "libnvidia-ml.so.1"})
    EXPECT_TRUE(IsInternalNative("f", binary)) << binary;
  for (const std::string_view binary :
       {"", "pythonic", "libpythonic.so", "python", "lib", "libcudnn.so.9", "libcudart_utils.so",
        "libtorch_cuda.so", "my-libcuda.so", "libcublas.so.12", "libc.so.6"})
    EXPECT_FALSE(IsInternalNative("f", binary)) << binary;
}

TEST(InternalFunctions, AreGosWayToMainToAGoroutineAndToC) {
  for (const std::string_view name :
       {"runtime.goexit", "runtime.goexit.abi0", "runtime.main", "runtime.mstart", "runtime.mstart0",
        "runtime.mstart1", "runtime.rt0_go.abi0", "runtime.systemstack.abi0", "runtime.cgocall",
        "runtime.asmcgocall.abi0", "main._Cfunc_launch.abi0", "example.org/gpu._Cfunc_GoString",
        "_cgo_3f1b2c_Cfunc_launch", "_cgo_3f1b2c_Cfunc_launch.cold"})
    EXPECT_TRUE(IsInternalNative(name)) << name;
  for (const std::string_view name :
       {"runtime.mallocgc", "runtime.main.func1", "runtime.schedule", "main.main", "main.runtime.main",
        "._Cfunc_launch", "main._Cfunc_", "main._Cfunc_launch(int)", "_cgoexp_3f1b_callback", "my_cgo_call"})
    EXPECT_FALSE(IsInternalNative(name)) << name;
}

TEST(InternalFunctions, ArePythonsThatStartOthers) {
  EXPECT_TRUE(IsInternalPython("_find_and_load", "<frozen importlib._bootstrap>"));
  EXPECT_TRUE(IsInternalPython("exec_module", "<frozen importlib._bootstrap_external>"));
  EXPECT_TRUE(IsInternalPython("_run_code", "<frozen runpy>"));
  EXPECT_TRUE(IsInternalPython("_run_code", "/usr/lib/python3.11/runpy.py"));
  for (const std::string_view name : {"_bootstrap", "Thread._bootstrap_inner", "Thread.run", "run"})
    EXPECT_TRUE(IsInternalPython(name, "/usr/lib/python3.11/threading.py")) << name;
  for (const std::string_view module :
       {"process", "context", "spawn", "forkserver", "popen_fork", "popen_spawn_posix"})
    EXPECT_TRUE(IsInternalPython("f", "/usr/lib/python3.11/multiprocessing/" + std::string(module) + ".py"))
        << module;
}

TEST(InternalFunctions, AreNotPythonsThatDoSomething) {
  EXPECT_FALSE(IsInternalPython("step", "/src/train.py"));
  EXPECT_FALSE(IsInternalPython("Thread.join", "/usr/lib/python3.11/threading.py"));
  EXPECT_FALSE(IsInternalPython("run", "/src/my_threading.py"));
  EXPECT_FALSE(IsInternalPython("run", "/src/runpy.py.txt"));
  EXPECT_FALSE(IsInternalPython("_run_code", "<frozen runpy> "));
  for (const std::string_view module : {"pool", "queues", "popen_", "popen_a/b", "x/process"})
    EXPECT_FALSE(IsInternalPython("f", "/lib/multiprocessing/" + std::string(module) + ".py")) << module;
  EXPECT_FALSE(IsInternalPython("_start", "/src/train.py")) << "a name of native code";
}

TEST(InternalFunctions, AreNativeOrPython) {
  for (const FrameKind kind : {FrameKind::kUnknown, FrameKind::kKernel, FrameKind::kJit, FrameKind::kGpu}) {
    EXPECT_FALSE(IsInternal({.name = "_start", .kind = kind}, "libcuda.so.1"));
    EXPECT_FALSE(IsInternal({.name = "run", .kind = kind, .file = "/usr/lib/python3.11/threading.py"}, ""));
  }
}

// Functions of a profile with one location each, in the order of FrameFunctions: by name.
FrameFunctions FunctionsOf(Profile& profile, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    profile.functions.push_back({name, name, "", 0});
    profile.locations.push_back(
        {FrameKind::kNative, -1, 0, {{static_cast<int32_t>(profile.functions.size()) - 1, 0}}});
  }
  return FrameFunctions(profile);
}

std::vector<std::string> InternalNames(const FrameFunctions& functions,
                                       const std::vector<std::string_view>& path) {
  std::vector<int32_t> function{-1}, parent{-1};
  for (const std::string_view name : path) {
    int32_t index = 0;
    while (functions.functions()[static_cast<size_t>(index)].name != name) ++index;
    parent.push_back(static_cast<int32_t>(function.size()) - 1);
    function.push_back(index);
  }
  const std::vector<bool> internal = InternalFunctions(functions, function, parent);
  std::vector<std::string> names;
  for (size_t i = 0; i < internal.size(); ++i)
    if (internal[i]) names.emplace_back(functions.functions()[i].name);
  return names;
}

TEST(InternalFunctions, AnUnnamedFrameOfLibcIsIfOnlyStartsCallIt) {
  Profile profile;
  const FrameFunctions functions = FunctionsOf(profile, {"[libc.so.6+0x27]", "_start", "main"});
  EXPECT_THAT(InternalNames(functions, {"_start", "[libc.so.6+0x27]", "main"}),
              ElementsAre("[libc.so.6+0x27]", "_start"));
  EXPECT_THAT(InternalNames(functions, {"_start", "[libc.so.6+0x27]", "main", "[libc.so.6+0x27]"}),
              ElementsAre("_start"));
  EXPECT_THAT(InternalNames(functions, {"main", "[libc.so.6+0x27]"}), ElementsAre("_start"));
  EXPECT_THAT(InternalNames(functions, {"[libc.so.6+0x27]", "main"}), ElementsAre("_start"))
      << "below the root";
}

TEST(InternalFunctions, NumbersBeyondTheTableAreNoFunctions) {
  Profile profile;
  const FrameFunctions functions = FunctionsOf(profile, {"[libc.so.6+0x27]"});
  const int32_t count = static_cast<int32_t>(functions.functions().size());
  int32_t unnamed = 0;
  while (functions.functions()[static_cast<size_t>(unnamed)].name != "[libc.so.6+0x27]") ++unnamed;
  const std::vector<bool> internal = InternalFunctions(
      functions, std::vector<int32_t>{-1, count + 1, unnamed}, std::vector<int32_t>{-1, 0, 1});
  EXPECT_FALSE(internal[static_cast<size_t>(unnamed)]) << "its caller is a thread's frame";
}

}  // namespace
}  // namespace gpusonde::server
