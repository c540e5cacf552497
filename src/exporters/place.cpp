// SPDX-License-Identifier: Apache-2.0
#include "exporters/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace gpusonde::exporters {
namespace {

// Code that came with Python, was installed into it or was written by PyTorch's compiler; users can rarely
// change it. PyTorch's traces name files from the folder on that they are imported from.
bool IsLibrary(const std::string& file) {
  return file.starts_with("<") || file.starts_with("torch/") || file.contains("/torchinductor_") ||
         file.find("/site-packages/") != std::string::npos ||
         file.find("/dist-packages/") != std::string::npos || file.find("/lib/python3") != std::string::npos;
}

// Whether the frame's binary has a name that begins with one of these.
bool IsIn(const model::Profile& profile, const model::Profile::Location& location,
          std::initializer_list<std::string_view> binaries) {
  if (location.binary < 0) return false;
  const std::string& name = profile.binaries[static_cast<size_t>(location.binary)].name;
  return std::ranges::any_of(binaries, [&](std::string_view binary) { return name.starts_with(binary); });
}

bool IsInterpreter(const model::Profile& profile, const model::Profile::Location* location) {
  return location != nullptr && IsIn(profile, *location, {"python3", "libpython3"});
}

// The GPU's driver and libraries, and our injected library: every launch passes through them, so they explain
// none. In traces their calls are known by name only.
bool IsGpuRuntime(const model::Profile& profile, const model::Profile::Location& location,
                  std::string_view function) {
  if (location.binary < 0 && location.kind == model::FrameKind::kNative)
    return function.starts_with("cuda") || function.starts_with("hip") ||
           (function.size() > 2 && function.starts_with("cu") && function[2] >= 'A' && function[2] <= 'Z');
  return IsIn(profile, location,
              {"libcuda.so", "libcudart.so", "libcupti.so", "libnvidia-", "libgpusonde-inject"});
}

// Libraries in which every program waits and allocates.
bool IsSystemLibrary(const model::Profile& profile, const model::Profile::Location& location) {
  return IsIn(profile, location, {"libc.so", "libc-2", "libpthread", "libstdc++", "ld-linux", "[vdso]"});
}

// Go's runtime, through which a program calls C, and the functions that cgo writes for it.
bool IsGoRuntime(const model::Profile::Function& function) {
  return function.name.starts_with("runtime.") || function.file.ends_with("_cgo_gotypes.go");
}

// How useful a frame is to the user.
enum class Rank : uint8_t { kNone, kSystemFunction, kFunction, kLine, kPythonLibrary, kPythonProgram };

Rank RankOf(const model::Profile& profile, const model::Profile::Location& location,
            const model::Profile::Line& line) {
  using enum model::FrameKind;
  if (line.function < 0 || location.kind == kGpu || location.kind == kKernel) return Rank::kNone;
  const model::Profile::Function& function = profile.functions[static_cast<size_t>(line.function)];
  if (IsGpuRuntime(profile, location, function.name)) return Rank::kNone;
  if (function.file.empty() || (line.line == 0 && location.kind != kPython)) {
    if (location.kind == kUnknown || function.name.starts_with('['))  // a range of a stripped file
      return Rank::kNone;
    return IsSystemLibrary(profile, location) || IsGoRuntime(function) ? Rank::kSystemFunction
                                                                       : Rank::kFunction;
  }
  if (IsGoRuntime(function)) return Rank::kSystemFunction;
  if (location.kind != kPython) return Rank::kLine;
  return IsLibrary(function.file) ? Rank::kPythonLibrary : Rank::kPythonProgram;
}

std::string NameOf(const model::Profile& profile, const model::Profile::Location& location,
                   const model::Profile::Line& line) {
  const model::Profile::Function& function = profile.functions[static_cast<size_t>(line.function)];
  if (!function.file.empty() && (line.line > 0 || location.kind == model::FrameKind::kPython)) {
    // The name of a Python module ends with its file, which is already shown.
    const std::string& name = function.system_name == "<module>" ? function.system_name : function.name;
    const std::string_view file = std::string_view(function.file).substr(function.file.rfind('/') + 1);
    return line.line > 0 ? fmt::format("{}:{} {}", file, line.line, name) : fmt::format("{} {}", file, name);
  }
  if (location.binary < 0) return function.name;
  return fmt::format("{} ({})", function.name, profile.binaries[static_cast<size_t>(location.binary)].name);
}

}  // namespace

std::optional<Place> PlaceOf(const model::Profile& profile, const std::vector<int32_t>& stack) {
  // A frame: the index into the stack, and which of its inlined functions. Names are only built for the
  // result, because there are many stacks.
  struct Frame {
    size_t at = 0;
    size_t line = 0;
  };
  std::optional<Frame> best, called, best_called;
  auto best_rank = Rank::kNone;
  for (size_t at = 0; at < stack.size(); ++at) {
    const auto* location = stack[at] < 0 ? nullptr : &profile.locations[static_cast<size_t>(stack[at])];
    const size_t lines = location == nullptr ? 0 : location->lines.size();
    for (size_t i = 0; i < std::max<size_t>(lines, 1); ++i) {
      const Rank rank = i < lines ? RankOf(profile, *location, location->lines[i]) : Rank::kNone;
      if (rank > best_rank) {
        best_rank = rank;
        best = {at, i};
        best_called = called;
      }
      if (!IsInterpreter(profile, location)) called = {at, i};
    }
  }
  if (!best.has_value()) return std::nullopt;
  const model::Profile::Location& location = profile.locations[static_cast<size_t>(stack[best->at])];
  return Place{
      NameOf(profile, location, location.lines[best->line]),
      best_called.has_value() ? model::FrameName(profile, stack[best_called->at], best_called->line) : ""};
}

}  // namespace gpusonde::exporters
