// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per node of a CUDA graph.
struct GraphNode {
  Id128 process;
  int32_t session = 0;
  int64_t graph = 0;
  int64_t node = 0;
  std::optional<int64_t> original_node;
  int64_t created_ns = 0;
  std::optional<Id128> stack;
};

inline constexpr Table kGraphNodes(
    "graph_nodes", Key{4}, "One row per node of a CUDA graph",
    Field("process", &GraphNode::process, "", "the process with the graph"),
    Field("session", &GraphNode::session, "", "awake period of the inject library"),
    Field("graph", &GraphNode::graph, "", "graph id"), Field("node", &GraphNode::node, "", "node id"),
    Field("original_node", &GraphNode::original_node, "", "node it was cloned from"),
    Field("created_ns", &GraphNode::created_ns, "ns", "when"),
    Field("stack", &GraphNode::stack, "", "stack that captured or created it; null when not recorded"));

}  // namespace gpusonde::model
