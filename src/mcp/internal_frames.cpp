// SPDX-License-Identifier: Apache-2.0
#include "mcp/internal_frames.h"

#include <algorithm>
#include <array>

namespace gpusonde::mcp {
namespace {

using std::literals::operator""sv;

constexpr std::array kBeginnings = {"_start"sv,
                                    "__libc_start_main"sv,
                                    "__libc_start_call_main"sv,
                                    "__libc_start_main_impl"sv,
                                    "start_thread"sv,
                                    "clone"sv,
                                    "clone3"sv,
                                    "__clone3"sv};
constexpr std::array kBinaries = {
    "libffi.so"sv,  "_ctypes."sv,     "ld-linux"sv,    "libgpusonde-inject.so"sv,
    "libcuda.so"sv, "libcudart.so"sv, "libcupti.so"sv, "libnvrtc.so"sv,
    "libnvidia-"sv};
// Of Go's runtime, after "runtime.": the way to main, to a goroutine and to C.
constexpr std::array kGoRuntime = {"goexit"sv, "main"sv,        "mstart"sv,  "mstart0"sv,   "mstart1"sv,
                                   "rt0_go"sv, "systemstack"sv, "cgocall"sv, "asmcgocall"sv};
constexpr std::array kThreadStarts = {"_bootstrap"sv, "_bootstrap_inner"sv, "run"sv};
constexpr std::array kProcessStarts = {"process.py"sv, "context.py"sv, "spawn.py"sv, "forkserver.py"sv};

// "python3.11", "libpython3.11.so.1.0".
bool IsInterpreter(std::string_view binary) {
  if (binary.starts_with("lib")) binary.remove_prefix("lib"sv.size());
  constexpr std::string_view kPython = "python";
  return binary.starts_with(kPython) && binary.size() > kPython.size() && binary[kPython.size()] >= '0' &&
         binary[kPython.size()] <= '9';
}

bool IsGoBeginning(std::string_view name) {
  if (name.ends_with(".abi0")) name.remove_suffix(".abi0"sv.size());
  if (name.starts_with("_cgo_") || name.find("._Cfunc_") != std::string_view::npos) return true;
  constexpr std::string_view kRuntime = "runtime.";
  return name.starts_with(kRuntime) &&
         std::ranges::find(kGoRuntime, name.substr(kRuntime.size())) != kGoRuntime.end();
}

bool IsPythonBeginning(std::string_view file, std::string_view name) {
  if (file.starts_with("<frozen importlib._bootstrap") || file == "<frozen runpy>" ||
      file.ends_with("/runpy.py"))
    return true;
  if (file.ends_with("/threading.py")) {
    if (name.starts_with("Thread.")) name.remove_prefix("Thread."sv.size());
    return std::ranges::find(kThreadStarts, name) != kThreadStarts.end();
  }
  constexpr std::string_view kMultiprocessing = "/multiprocessing/";
  const size_t at = file.rfind(kMultiprocessing);
  if (at == std::string_view::npos) return false;
  const std::string_view module = file.substr(at + kMultiprocessing.size());
  return std::ranges::find(kProcessStarts, module) != kProcessStarts.end() ||
         (module.starts_with("popen_") && module.ends_with(".py"));
}

}  // namespace

bool IsInternal(const FrameFacts& function) {
  if (function.kind == "python") return IsPythonBeginning(function.file, function.name);
  if (function.kind != "native") return false;
  return std::ranges::find(kBeginnings, function.name) != kBeginnings.end() || IsGoBeginning(function.name) ||
         IsInterpreter(function.binary) || std::ranges::any_of(kBinaries, [&](std::string_view begin) {
           return function.binary.starts_with(begin);
         });
}

}  // namespace gpusonde::mcp
