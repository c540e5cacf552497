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
  uint64_t hash = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, an odd multiplier without pattern
  for (const int64_t extent : grid_and_block) {
    hash = (hash ^ static_cast<uint64_t>(extent)) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  }
  return static_cast<uint32_t>(hash);
}

}  // namespace gpusonde::importers
