// SPDX-License-Identifier: Apache-2.0
#include "server/internal_functions.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace gpusonde::server {
namespace {

using std::literals::operator""sv;

using Function = FrameFunctions::Function;

// Functions that start a process or a thread.
constexpr std::array kStarts = {"_start"sv,
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

bool IsWord(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool RemovePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool RemoveSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

bool IsStart(const Function& function) {
  return function.kind == model::FrameKind::kNative &&
         std::ranges::find(kStarts, function.name) != kStarts.end();
}

// "python3.11", "libpython3.11.so.1.0".
bool IsInterpreter(std::string_view binary) {
  RemovePrefix(binary, "lib"sv);
  return RemovePrefix(binary, "python"sv) && !binary.empty() && binary.front() >= '0' &&
         binary.front() <= '9';
}

// "runtime.cgocall", "main._Cfunc_launch.abi0"; of the C side "_cgo_3f1b_Cfunc_launch", with what compilers
// append (".cold").
bool IsGoTransition(std::string_view name) {
  if (name.starts_with("_cgo_"sv)) return true;
  RemoveSuffix(name, ".abi0"sv);
  if (RemovePrefix(name, "runtime."sv)) return std::ranges::find(kGoRuntime, name) != kGoRuntime.end();
  constexpr std::string_view kToC = "._Cfunc_";
  const size_t at = name.find(kToC);
  return at != std::string_view::npos && at > 0 && IsWord(name.substr(at + kToC.size()));
}

bool IsPythonStart(std::string_view file, std::string_view name) {
  if (file.starts_with("<frozen importlib._bootstrap"sv) || file == "<frozen runpy>"sv ||
      file.ends_with("/runpy.py"sv))
    return true;
  if (file.ends_with("/threading.py"sv)) {
    RemovePrefix(name, "Thread."sv);
    return std::ranges::find(kThreadStarts, name) != kThreadStarts.end();
  }
  constexpr std::string_view kMultiprocessing = "/multiprocessing/";
  const size_t at = file.rfind(kMultiprocessing);
  if (at == std::string_view::npos) return false;
  std::string_view module = file.substr(at + kMultiprocessing.size());
  if (std::ranges::find(kProcessStarts, module) != kProcessStarts.end()) return true;
  return RemovePrefix(module, "popen_"sv) && RemoveSuffix(module, ".py"sv) && IsWord(module);
}

// As model::FrameName() names a frame without a symbol.
bool IsUnnamedInLibc(const Function& function) {
  return function.kind == model::FrameKind::kNative && function.name.starts_with("[libc.so.6+"sv);
}

}  // namespace

bool IsInternal(const Function& function, std::string_view binary) {
  if (function.kind == model::FrameKind::kPython) return IsPythonStart(function.file, function.name);
  if (function.kind != model::FrameKind::kNative) return false;
  return IsStart(function) || IsGoTransition(function.name) || IsInterpreter(binary) ||
         std::ranges::any_of(kBinaries, [&](std::string_view begin) { return binary.starts_with(begin); });
}

std::vector<bool> InternalFunctions(const FrameFunctions& functions, std::span<const int32_t> node_function,
                                    std::span<const int32_t> node_parent) {
  const auto& all = functions.functions();
  std::vector<bool> is_internal(all.size());
  std::vector<bool> follows_start(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const int32_t binary = all[i].binary;
    is_internal[i] = IsInternal(
        all[i], binary < 0 ? std::string_view() : functions.binaries()[static_cast<size_t>(binary)].name);
    follows_start[i] = IsUnnamedInLibc(all[i]);
  }
  const auto is_known = [&](int32_t function) {
    return function >= 0 && static_cast<size_t>(function) < all.size();
  };
  for (size_t node = 0; node < node_function.size(); ++node) {
    if (!is_known(node_function[node])) continue;
    const auto function = static_cast<size_t>(node_function[node]);
    if (!follows_start[function]) continue;
    const int32_t caller = node_parent[node] < 0 ? -1 : node_function[static_cast<size_t>(node_parent[node])];
    follows_start[function] = is_known(caller) && IsStart(all[static_cast<size_t>(caller)]);
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (follows_start[i]) is_internal[i] = true;
  return is_internal;
}

}  // namespace gpusonde::server
