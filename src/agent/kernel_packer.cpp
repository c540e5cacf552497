// SPDX-License-Identifier: Apache-2.0
#include "agent/kernel_packer.h"

#include <algorithm>
#include <functional>
#include <iterator>
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
  Pack& pack = PackOf(launch);
  pack.end_ns = std::max(pack.end_ns, end_ns);
  pack.duration_ns = AddSaturated(pack.duration_ns, end_ns - start_ns);
  pack.kernels.push_back({.offset_ns = start_ns - launch.second_ns,
                          .duration_ns = end_ns - start_ns,
                          .graph_node = kernel.graph_node,
                          .correlation = kernel.correlation});
}

KernelPacker::Pack& KernelPacker::PackOf(Launch launch) {
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
  for (auto& [launch, pack] : packs_) {
    SortNearlySorted(pack.kernels, &Timed::offset_ns);
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
                          .end_ns = pack.end_ns,
                          .count = std::ssize(pack.kernels),
                          .duration_ns = pack.duration_ns,
                          .offsets_ns = {},
                          .durations_ns = {},
                          .correlations = {},
                          .graph_nodes = {}};
    for (const auto& [list, member] :
         {std::pair(&row.offsets_ns, &Timed::offset_ns), std::pair(&row.durations_ns, &Timed::duration_ns)}) {
      list->reserve(pack.kernels.size());
      for (const Timed& kernel : pack.kernels) list->push_back(kernel.*member);
    }
    row.correlations.reserve(pack.kernels.size());
    for (const Timed& kernel : pack.kernels) row.correlations.push_back(kernel.correlation);
    if (launch.graph)
      for (const Timed& kernel : pack.kernels)
        row.graph_nodes.push_back(static_cast<int64_t>(kernel.graph_node));
    rows.kernel_packs.Append(row);
  }
  last_ = nullptr;
  packs_.clear();
  names_.clear();
}

}  // namespace gpusonde::agent
