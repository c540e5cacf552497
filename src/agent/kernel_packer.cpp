// SPDX-License-Identifier: Apache-2.0
#include "agent/kernel_packer.h"

#include <algorithm>
#include <functional>

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
  model::KernelPack& pack = PackOf(launch);
  ++pack.count;
  pack.end_ns = std::max(pack.end_ns, end_ns);
  pack.duration_ns = AddSaturated(pack.duration_ns, end_ns - start_ns);
  pack.offsets_ns.push_back(start_ns - launch.second_ns);
  pack.durations_ns.push_back(end_ns - start_ns);
  pack.correlations.push_back(kernel.correlation);
  if (launch.graph) pack.graph_nodes.push_back(static_cast<int64_t>(kernel.graph_node));
}

model::KernelPack& KernelPacker::PackOf(Launch launch) {
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
    pack.process = launch.process;
    pack.device = launch.device;
    pack.session = launch.session;
    pack.context = launch.context;
    pack.stream = launch.stream == cupti::kNoStream ? -1 : int64_t{launch.stream};
    pack.name = ToUtf8(launch.name);
    pack.grid_x = static_cast<int32_t>(launch.grid[0]);
    pack.grid_y = static_cast<int32_t>(launch.grid[1]);
    pack.grid_z = static_cast<int32_t>(launch.grid[2]);
    pack.block_x = launch.block[0];
    pack.block_y = launch.block[1];
    pack.block_z = launch.block[2];
    pack.registers = launch.registers;
    pack.static_shared_bytes = launch.static_shared_bytes;
    pack.dynamic_shared_bytes = launch.dynamic_shared_bytes;
    pack.start_ns = launch.second_ns;
    rows.kernel_packs.Append(pack);
  }
  last_ = nullptr;
  packs_.clear();
  names_.clear();
}

}  // namespace gpusonde::agent
