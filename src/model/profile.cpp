// SPDX-License-Identifier: Apache-2.0
#include "model/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/saturated.h"

namespace gpusonde::model {

namespace {

void BoundSum(std::vector<Profile::Sample>& samples, int64_t Profile::Sample::* value) {
  constexpr int64_t kMaxSum = int64_t{1} << 62;
  int64_t sum = 0;
  for (Profile::Sample& sample : samples) {
    sample.*value = std::max<int64_t>(sample.*value, 0);
    sum = AddSaturated(sum, sample.*value);
  }
  if (sum <= kMaxSum) return;
  const int64_t share = kMaxSum / std::ssize(samples);
  for (Profile::Sample& sample : samples) sample.*value = std::min(sample.*value, share);
}

}  // namespace

void BoundSums(Profile& profile) {
  BoundSum(profile.samples, &Profile::Sample::count);
  BoundSum(profile.samples, &Profile::Sample::weight_ns);
}

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
