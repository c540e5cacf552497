// SPDX-License-Identifier: Apache-2.0
#include "importers/event.h"

namespace gpusonde::importers {

std::string_view Name(CopyKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "htod", "dtoh", "dtod", "ptop", "htoh"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(MemoryKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "pageable", "pinned", "device", "managed"};
  return kNames[static_cast<size_t>(kind)];
}

uint32_t ShapeOf(const std::array<int64_t, 6>& grid_and_block) {
  // Multilinear, so that the products don't wait for each other (Lemire and Kaser 2014, section 3); the
  // multipliers are odd and without pattern.
  constexpr std::array<uint64_t, 6> kFactors = {0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F,
                                                0x165667B19E3779F9, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53};
  uint64_t hash = 0;
  for (size_t i = 0; i < kFactors.size(); ++i) hash += static_cast<uint64_t>(grid_and_block[i]) * kFactors[i];
  return static_cast<uint32_t>(hash >> 32);
}

void EventBatch::HandOver(EventSink& sink) {
  if (!gpu.empty()) sink.Gpu(gpu);
  if (!calls.empty()) sink.Api(calls);
  if (!ranges.empty()) sink.Ranges(ranges);
  if (others != 0) sink.Other(others);
  gpu.clear();
  calls.clear();
  ranges.clear();
  others = 0;
}

}  // namespace gpusonde::importers
