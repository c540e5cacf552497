// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal.h"
#include "top/snapshot.h"

namespace gpusonde::top {

// What processes are sorted by, falling.
enum class SortBy : uint8_t { kBusy, kMemory, kKernels, kCpu };
inline constexpr std::string_view kSortNames[] = {"busy", "memory", "kernels", "cpu"};

struct View {
  Terminal terminal;  // its width; 0: unlimited
  size_t height = 0;  // 0: unlimited, and nothing about keys
  SortBy sort = SortBy::kBusy;
  std::string problem;  // why the snapshot is not the newest; empty if it is
  int64_t age_s = 0;    // since the snapshot was read
};

// From this age on a snapshot says how old it is.
inline constexpr int64_t kOldS = 10;

// The lines of a snapshot, none wider than the view, all together no more than its height. Texts from outside
// are escaped (base/printable.h) and cut where there is no room, numbers are left out as a whole column.
std::vector<std::string> Render(const Snapshot& snapshot, const View& view);

// A line of eighths of blocks from the values, 0…100, in `width` columns; a space where nothing is known.
std::string Sparkline(std::span<const std::optional<double>> values, size_t width);

}  // namespace gpusonde::top
