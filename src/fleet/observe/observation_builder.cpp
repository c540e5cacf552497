// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/observation_builder.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <optional>
#include <utility>

#include "base/int128.h"
#include "base/saturated.h"

namespace gpusonde::fleet {
namespace {

template <std::unsigned_integral Number>
Number Bounded(int64_t value) {
  return static_cast<Number>(std::min<uint64_t>(static_cast<uint64_t>(std::max<int64_t>(value, 0)),
                                                std::numeric_limits<Number>::max()));
}

int64_t Volume(const std::array<int64_t, 3>& extents) {
  int64_t volume = 1;
  for (const int64_t extent : extents) volume = Saturated(Int128{volume} * std::max<int64_t>(extent, 0));
  return volume;
}

std::optional<GpuWork::Direction> DirectionOf(std::string_view kind) {
  if (kind == "htod") return GpuWork::Direction::kToDevice;
  if (kind == "dtoh") return GpuWork::Direction::kFromDevice;
  if (kind == "dtod") return GpuWork::Direction::kWithinDevice;
  return std::nullopt;
}

}  // namespace

std::string_view ObservationBuilder::Keep(std::string_view name) {
  const auto found = names_.find(name);
  return found != names_.end() ? *found : *names_.emplace(name).first;
}

void ObservationBuilder::AddKernel(const Kernel& kernel) {
  is_busy_ = true;
  const auto [stream, is_new] =
      streams_.try_emplace({kernel.process, kernel.context, kernel.stream}, next_stream_);
  if (is_new) next_stream_ += 1;
  fingerprint_.Add(stream->second, kernel.name, kernel.duration_ns);
  work_.kernels.push_back({.name = Keep(kernel.name),
                           .blocks = Bounded<uint64_t>(Volume(kernel.grid)),
                           .threads_per_block = Bounded<uint32_t>(Volume(kernel.block)),
                           .registers_per_thread = Bounded<uint32_t>(kernel.registers),
                           .shared_bytes_per_block = Bounded<uint32_t>(
                               AddSaturated(std::max<int64_t>(kernel.static_shared_bytes, 0),
                                            std::max<int64_t>(kernel.dynamic_shared_bytes, 0))),
                           .duration_ns = kernel.duration_ns});
}

void ObservationBuilder::AddCopy(std::string_view kind, int64_t bytes, int64_t duration_ns) {
  is_busy_ = true;
  if (const auto direction = DirectionOf(kind); direction.has_value())
    work_.copies.push_back({*direction, bytes, duration_ns});
}

Observation ObservationBuilder::Build(std::string gpu_uuid, std::string gpu_name) const {
  Observation observation{.gpu_uuid = std::move(gpu_uuid),
                          .gpu_name = std::move(gpu_name),
                          .is_busy = is_busy_,
                          .kernels = work_.kernels.size(),
                          .fingerprint = fingerprint_.Build(),
                          .rows = {}};
  for (uint32_t group = 0; group < OpenCharacteristics(); ++group)
    observation.rows.push_back(Measure(group, work_));
  return observation;
}

}  // namespace gpusonde::fleet
