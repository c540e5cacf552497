// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// Some rows per stream, launch configuration and second, with lists of the kernels that started then; written
// by continuous profiling. 10,000 kernels a second give a few hundred rows. Only the order of kernels is
// lost; the store's view `kernels` includes them (store/duckdb/schema.h).
struct KernelPack {
  Id128 process;
  Id128 device;
  int32_t session = 0;
  int64_t context = 0;
  int64_t stream = 0;
  std::string name;
  int32_t grid_x = 0;
  int32_t grid_y = 0;
  int32_t grid_z = 0;
  int32_t block_x = 0;
  int32_t block_y = 0;
  int32_t block_z = 0;
  int32_t registers = 0;
  int64_t static_shared_bytes = 0;
  int64_t dynamic_shared_bytes = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t count = 0;
  int64_t duration_ns = 0;
  std::vector<int64_t> offsets_ns;
  std::vector<int64_t> durations_ns;
  std::vector<int64_t> correlations;
  std::vector<int64_t> graph_nodes;
};

inline constexpr Table kKernelPacks(
    "kernel_packs", kFacts,
    "Some rows per stream, launch configuration and second, with lists of the kernels that started then; "
    "written by continuous profiling",
    Field("process", &KernelPack::process, "", "the launching process"),
    Field("device", &KernelPack::device, "", "device they ran on"),
    Field("session", &KernelPack::session, "", "as in kernels, like all undocumented columns"),
    Field("context", &KernelPack::context, "", "CUDA context id"),
    Field("stream", &KernelPack::stream, "", "CUDA stream id"),
    Field("name", &KernelPack::name, "", "mangled name as the device reports it"),
    Field("grid_x", &KernelPack::grid_x, "blocks", "grid size"),
    Field("grid_y", &KernelPack::grid_y, "blocks", "grid size"),
    Field("grid_z", &KernelPack::grid_z, "blocks", "grid size"),
    Field("block_x", &KernelPack::block_x, "threads", "block size"),
    Field("block_y", &KernelPack::block_y, "threads", "block size"),
    Field("block_z", &KernelPack::block_z, "threads", "block size"),
    Field("registers", &KernelPack::registers, "", "registers per thread"),
    Field("static_shared_bytes", &KernelPack::static_shared_bytes, "bytes", "static shared memory per block"),
    Field("dynamic_shared_bytes", &KernelPack::dynamic_shared_bytes, "bytes",
          "dynamic shared memory per block"),
    Field("start_ns", &KernelPack::start_ns, "ns", "the full second in which all of them started"),
    Field("end_ns", &KernelPack::end_ns, "ns", "end of the last one"),
    Field("count", &KernelPack::count, "", "how many"),
    Field("duration_ns", &KernelPack::duration_ns, "ns", "sum of durations"),
    Field("offsets_ns", &KernelPack::offsets_ns, "ns", "start of each, since start_ns"),
    Field("durations_ns", &KernelPack::durations_ns, "ns", "end less start of each"),
    Field("correlations", &KernelPack::correlations, "", "of each, joins it to its launch"),
    Field("graph_nodes", &KernelPack::graph_nodes, "", "CUDA graph node id of each; empty outside graphs"));

}  // namespace gpusonde::model
