// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per kernel that ran on a device; exact, never sampled.
struct Kernel {
  Id128 process;
  Id128 device;
  int32_t session = 0;
  int64_t correlation = 0;
  int64_t context = 0;
  int64_t stream = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::string name;
  int32_t grid_x = 0;
  int32_t grid_y = 0;
  int32_t grid_z = 0;
  int32_t block_x = 0;
  int32_t block_y = 0;
  int32_t block_z = 0;
  std::optional<int32_t> registers;
  std::optional<int64_t> static_shared_bytes;
  std::optional<int64_t> dynamic_shared_bytes;
  std::optional<int64_t> graph_node;
};

inline constexpr Table kKernels(
    "kernels", kFacts, "One row per kernel that ran on a device; exact, never sampled",
    Field("process", &Kernel::process, "", "the launching process"),
    Field("device", &Kernel::device, "", "device it ran on"),
    Field("session", &Kernel::session, "",
          "awake period of the inject library, within which correlation ids are unique"),
    Field("correlation", &Kernel::correlation, "",
          "joins the kernel to its launch (api_calls) within the session and 60 s"),
    Field("context", &Kernel::context, "", "CUDA context id"),
    Field("stream", &Kernel::stream, "", "CUDA stream id"),
    Field("start_ns", &Kernel::start_ns, "ns", "start on the device"),
    Field("end_ns", &Kernel::end_ns, "ns", "end on the device"),
    Field("name", &Kernel::name, "", "mangled name as the device reports it"),
    Field("grid_x", &Kernel::grid_x, "blocks", "grid size"),
    Field("grid_y", &Kernel::grid_y, "blocks", "grid size"),
    Field("grid_z", &Kernel::grid_z, "blocks", "grid size"),
    Field("block_x", &Kernel::block_x, "threads", "block size"),
    Field("block_y", &Kernel::block_y, "threads", "block size"),
    Field("block_z", &Kernel::block_z, "threads", "block size"),
    Field("registers", &Kernel::registers, "", "registers per thread"),
    Field("static_shared_bytes", &Kernel::static_shared_bytes, "bytes", "static shared memory per block"),
    Field("dynamic_shared_bytes", &Kernel::dynamic_shared_bytes, "bytes", "dynamic shared memory per block"),
    Field("graph_node", &Kernel::graph_node, "", "CUDA graph node id; null outside graphs"));

}  // namespace gpusonde::model
