// SPDX-License-Identifier: Apache-2.0
#include "agent/kernel_packer.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "base/nearly_sorted.h"
#include "base/saturated.h"
#include "base/time.h"
#include "base/utf8.h"

namespace gpusonde::agent {

// Hashes only fields that differ between consecutive kernels; equality compares all.
size_t KernelPacker::Hash::operator()(const Launch& launch) const {
  size_t hash = std::hash<std::string_view>()(launch.name);
  for (const uint64_t part : {launch.process.low, launch.device.low, static_cast<uint64_t>(launch.second_ns),
                              uint64_t{launch.stream}, uint64_t{launch.grid[0]}, uint64_t{launch.grid[1]}})
    hash = (hash ^ part) * 0x9e3779b97f4a7c15 + (hash >> 32);
  return hash;
}

void KernelPacker::Add(const Id128& process, const Id128& device, int32_t session,
                       const cupti::Kernel& kernel, int64_t start_ns, int64_t end_ns) {
  const Launch launch{.process = process,
                      .device = device,
                      .second_ns = start_ns - start_ns % kNanosPerSecond,
                      .name = kernel.name,
                      .session = session,
                      .context = kernel.context,
                      .stream = kernel.stream,
                      .grid = {kernel.grid_x, kernel.grid_y, kernel.grid_z},
                      .block = {kernel.block_x, kernel.block_y, kernel.block_z},
                      .registers = kernel.registers,
                      .static_shared_bytes = kernel.static_shared_bytes,
                      .dynamic_shared_bytes = kernel.dynamic_shared_bytes,
                      .graph = kernel.graph_node != 0};
  KernelsOf(launch).push_back({.offset_ns = start_ns - launch.second_ns,
                               .duration_ns = end_ns - start_ns,
                               .graph_node = kernel.graph_node,
                               .correlation = kernel.correlation});
}

std::vector<KernelPacker::Timed>& KernelPacker::KernelsOf(Launch launch) {
  if (last_ != nullptr && last_->first == launch) return last_->second;
  auto found = packs_.find(launch);
  if (found == packs_.end()) {
    launch.name = *names_.emplace(launch.name).first;
    found = packs_.try_emplace(launch).first;
  }
  last_ = &*found;
  return found->second;
}

void KernelPacker::Write(Rows& rows) {
  for (auto& [launch, kernels] : packs_) {
    SortNearlySorted(kernels, &Timed::offset_ns);
    for (std::span<const Timed> rest = kernels; !rest.empty();) {
      const std::span<const Timed> pack = rest.first(std::min(rest.size(), kMaxKernels));
      rest = rest.subspan(pack.size());
      rows.kernel_packs.Append(RowOf(launch, pack));
    }
  }
  last_ = nullptr;
  packs_.clear();
  names_.clear();
}

model::KernelPack KernelPacker::RowOf(const Launch& launch, std::span<const Timed> kernels) {
  model::KernelPack row{.process = launch.process,
                        .device = launch.device,
                        .session = launch.session,
                        .context = launch.context,
                        .stream = launch.stream == cupti::kNoStream ? -1 : int64_t{launch.stream},
                        .name = ToUtf8(launch.name),
                        .grid_x = static_cast<int32_t>(launch.grid[0]),
                        .grid_y = static_cast<int32_t>(launch.grid[1]),
                        .grid_z = static_cast<int32_t>(launch.grid[2]),
                        .block_x = launch.block[0],
                        .block_y = launch.block[1],
                        .block_z = launch.block[2],
                        .registers = launch.registers,
                        .static_shared_bytes = launch.static_shared_bytes,
                        .dynamic_shared_bytes = launch.dynamic_shared_bytes,
                        .start_ns = launch.second_ns,
                        .end_ns = launch.second_ns,
                        .count = std::ssize(kernels),
                        .duration_ns = 0,
                        .offsets_ns = {},
                        .durations_ns = {},
                        .correlations = {},
                        .graph_nodes = {}};
  row.offsets_ns.reserve(kernels.size());
  row.durations_ns.reserve(kernels.size());
  row.correlations.reserve(kernels.size());
  for (const Timed& kernel : kernels) {
    row.end_ns = std::max(row.end_ns, launch.second_ns + kernel.offset_ns + kernel.duration_ns);
    row.duration_ns = AddSaturated(row.duration_ns, kernel.duration_ns);
    row.offsets_ns.push_back(kernel.offset_ns);
    row.durations_ns.push_back(kernel.duration_ns);
    row.correlations.push_back(kernel.correlation);
    if (launch.graph) row.graph_nodes.push_back(static_cast<int64_t>(kernel.graph_node));
  }
  return row;
}

}  // namespace gpusonde::agent
