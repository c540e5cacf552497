// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/waves.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "base/int128.h"
#include "base/saturated.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kRegisterUnit = 256;  // registers of a warp are allocated in these
constexpr int64_t kWarpUnit = 4;        // and warps by these, one for each part of a multiprocessor
constexpr int64_t kSharedUnit = 128;    // bytes
// No launch has more in a dimension; products of three fit, and of larger ones nothing is claimed.
constexpr int64_t kMaxExtent = int64_t{1} << 31;
constexpr int64_t kMaxBlocks = int64_t{1} << 40;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// The product of three extents; 0 if it can't be that of a launch.
int64_t ProductOf(int64_t x, int64_t y, int64_t z) {
  for (const int64_t extent : {x, y, z})
    if (extent <= 0 || extent > kMaxExtent) return 0;
  const Int128 product = Int128{x} * y * z;
  return product <= kMaxBlocks ? static_cast<int64_t>(product) : 0;
}

const importers::TracedDevice* DeviceOf(std::span<const importers::TracedDevice> devices,
                                        const RankKey& rank) {
  const auto found = std::ranges::find_if(devices, [&](const importers::TracedDevice& device) {
    return device.ordinal == rank.device && (device.pid == 0 || device.pid == importers::PidOf(rank.process));
  });
  return found == devices.end() ? nullptr : &*found;
}

}  // namespace

std::optional<int64_t> ConcurrentBlocks(const LaunchShape& shape, const importers::TracedDevice& device) {
  const importers::Multiprocessor& limits = device.multiprocessor;
  if (!device.sm_count.has_value() || *device.sm_count <= 0 || *device.sm_count > kMaxExtent)
    return std::nullopt;
  for (const int64_t limit : {limits.threads, limits.blocks, limits.registers, limits.shared_bytes})
    if (limit <= 0 || limit > kMaxExtent) return std::nullopt;
  if (shape.blocks <= 0 || shape.threads <= 0 || shape.registers <= 0 || shape.registers > 1'024 ||
      shape.shared_bytes < 0 || shape.shared_bytes > kMaxExtent)
    return std::nullopt;
  const int64_t warps = RoundUp(shape.threads, kWarp) / kWarp;
  const int64_t of_registers =
      limits.registers / RoundUp(shape.registers * kWarp, kRegisterUnit) / kWarpUnit * kWarpUnit / warps;
  const int64_t shared = RoundUp(shape.shared_bytes + limits.reserved_shared_bytes, kSharedUnit);
  const int64_t of_shared = shared > 0 ? limits.shared_bytes / shared : limits.blocks;
  const int64_t at_a_time =
      std::min({limits.blocks, limits.threads / (warps * kWarp), of_registers, of_shared});
  return at_a_time > 0 ? std::optional(at_a_time * *device.sm_count) : std::nullopt;
}

void WaveTable::Add(const importers::GpuEvent& event, const importers::GpuDetail& detail) {
  const std::array<int64_t, 6>& extents = detail.grid_and_block;
  LaunchShape shape{
      .blocks = ProductOf(extents[0], extents[1], extents[2]),
      .threads = ProductOf(extents[3], extents[4], extents[5]),
      .registers = detail.registers.value_or(0),
      .shared_bytes = AddSaturated(std::max<int64_t>(0, detail.static_shared_bytes.value_or(0)),
                                   std::max<int64_t>(0, detail.dynamic_shared_bytes.value_or(0)))};
  Key key{.rank = {event.process, event.device}, .name = event.name, .shape = shape};
  auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    if (shapes_.size() >= kMaxShapes) key = {.rank = {event.process, event.device}, .name = 0, .shape = {}};
    found = shapes_.try_emplace(key).first;
  }
  ++found->second.count;
  found->second.total_ns = AddSaturated(found->second.total_ns, event.end_ns - event.start_ns);
}

std::vector<RankWaves> WaveTable::Finish(std::span<const importers::TracedDevice> devices,
                                         const NameTable& names) const {
  std::vector<RankWaves> ranks;
  std::map<std::string_view, RankWaves::Kernel> kernels;
  const auto finish_rank = [&] {
    if (ranks.empty()) return;
    std::vector<RankWaves::Kernel>& lines = ranks.back().kernels;
    for (auto& [name, kernel] : kernels)
      if (kernel.lost_ns > 0) lines.push_back(kernel);
    std::ranges::stable_sort(lines, std::greater(), &RankWaves::Kernel::lost_ns);
    if (lines.size() > RankWaves::kMaxKernels) lines.resize(RankWaves::kMaxKernels);
    kernels.clear();
  };
  for (const auto& [key, sums] : shapes_) {
    if (ranks.empty() || ranks.back().rank != key.rank) {
      finish_rank();
      ranks.emplace_back().rank = key.rank;
    }
    RankWaves& rank = ranks.back();
    const importers::TracedDevice* const device = DeviceOf(devices, key.rank);
    const std::optional<int64_t> at_a_time =
        device != nullptr ? ConcurrentBlocks(key.shape, *device) : std::nullopt;
    if (!at_a_time.has_value()) {
      rank.unknown_ns = AddSaturated(rank.unknown_ns, sums.total_ns);
      continue;
    }
    rank.known_ns = AddSaturated(rank.known_ns, sums.total_ns);
    const int64_t whole = RoundUp(key.shape.blocks, *at_a_time);
    int64_t lost_ns = 0;
    if (key.shape.blocks > *at_a_time)
      lost_ns = static_cast<int64_t>(Int128{sums.total_ns} * (whole - key.shape.blocks) / whole);
    rank.lost_ns = AddSaturated(rank.lost_ns, lost_ns);
    const std::string_view name = names[names.Canonical(key.name)];
    RankWaves::Kernel& kernel = kernels[name];
    kernel.name = name;
    kernel.count += sums.count;
    kernel.total_ns = AddSaturated(kernel.total_ns, sums.total_ns);
    kernel.lost_ns = AddSaturated(kernel.lost_ns, lost_ns);
  }
  finish_rank();
  return ranks;
}

}  // namespace gpusonde::analyze
