// SPDX-License-Identifier: Apache-2.0
#include "exporters/timeline/timeline_format.h"

#include <algorithm>
#include <array>

namespace gpusonde::exporters {

std::span<const TimelineFormat* const> AllTimelineFormats() {
  static constexpr std::array kFormats = {
      &kChrome,
      &kPerfetto,
  };
  return kFormats;
}

const TimelineFormat* FindTimelineFormat(std::string_view name) {
  const auto all = AllTimelineFormats();
  const auto found = std::ranges::find(all, name, &TimelineFormat::name);
  return found == all.end() ? nullptr : *found;
}

}  // namespace gpusonde::exporters
