// SPDX-License-Identifier: Apache-2.0
#include "agent/rows.h"

namespace gpusonde::agent {

std::vector<model::Batch> Rows::Take() {
  std::vector<model::Batch> batches;
  const auto take = [&](auto&... builders) {
    ((builders.rows() > 0 ? batches.push_back(builders.Take()) : void()), ...);
  };
  take(sources, processes, threads, binaries, mappings, functions, locations, stacks, samples, devices,
       gpu_sessions, graph_nodes, api_calls, kernels, kernel_packs, memcpys, memsets, syncs, ranges,
       communicators, collectives, kernel_windows, metrics, drops);
  return batches;
}

}  // namespace gpusonde::agent
