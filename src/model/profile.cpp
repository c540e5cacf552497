// SPDX-License-Identifier: Apache-2.0
#include "model/profile.h"

#include <fmt/format.h>

namespace gpusonde::model {

std::string FrameName(const Profile& profile, int32_t location_index, size_t line) {
  if (location_index < 0) return "[unknown]";
  const Profile::Location& location = profile.locations[static_cast<size_t>(location_index)];
  if (line < location.lines.size() && location.lines[line].function >= 0)
    return profile.functions[static_cast<size_t>(location.lines[line].function)].name;
  if (location.binary >= 0)
    return fmt::format("[{}+{:#x}]", profile.binaries[static_cast<size_t>(location.binary)].name,
                       location.address);
  return location.kind == FrameKind::kJit ? "[JIT code]" : "[unknown]";
}

}  // namespace gpusonde::model
