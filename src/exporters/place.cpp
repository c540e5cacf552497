// SPDX-License-Identifier: Apache-2.0
#include "exporters/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpusonde::exporters {
namespace {

// Code that came with Python or was installed into it: seldom what a person can change.
bool IsLibrary(const std::string& file) {
  return file.starts_with("<") || file.find("/site-packages/") != std::string::npos ||
         file.find("/dist-packages/") != std::string::npos || file.find("/lib/python3") != std::string::npos;
}

bool IsInterpreter(const model::Profile& profile, const model::Profile::Location* location) {
  if (location == nullptr || location->binary < 0) return false;
  const std::string& name = profile.binaries[static_cast<size_t>(location->binary)].name;
  return name.starts_with("python3") || name.starts_with("libpython3");
}

}  // namespace

std::optional<Place> PlaceOf(const model::Profile& profile, const std::vector<int32_t>& stack) {
  // A frame: index into the stack, and of inlined functions which. Names are made for the result only: stacks
  // are many, and most of their frames are not it.
  struct Frame {
    size_t at = 0;
    size_t line = 0;
  };
  std::optional<Frame> best, called, best_called;
  int best_rank = 0;
  for (size_t at = 0; at < stack.size(); ++at) {
    const auto* location = stack[at] < 0 ? nullptr : &profile.locations[static_cast<size_t>(stack[at])];
    const size_t lines = location == nullptr ? 0 : location->lines.size();
    for (size_t i = 0; i < std::max<size_t>(lines, 1); ++i) {
      const auto line = i < lines ? location->lines[i] : model::Profile::Line{};
      if (line.function >= 0 && line.line > 0) {
        const std::string& file = profile.functions[static_cast<size_t>(line.function)].file;
        const bool python = location->kind == model::FrameKind::kPython;
        const int rank = file.empty() ? 0 : !python ? 1 : IsLibrary(file) ? 2 : 3;
        if (rank > best_rank) {
          best_rank = rank;
          best = {at, i};
          best_called = called;
        }
      }
      if (!IsInterpreter(profile, location)) called = {at, i};
    }
  }
  if (!best.has_value()) return std::nullopt;
  const auto name_of = [&](const Frame& frame) {
    return model::FrameName(profile, stack[frame.at], frame.line);
  };
  const model::Profile::Line line = profile.locations[static_cast<size_t>(stack[best->at])].lines[best->line];
  const std::string& file = profile.functions[static_cast<size_t>(line.function)].file;
  return Place{fmt::format("{}:{} {}", file.substr(file.rfind('/') + 1), line.line, name_of(*best)),
               best_called.has_value() ? name_of(*best_called) : ""};
}

}  // namespace gpusonde::exporters
