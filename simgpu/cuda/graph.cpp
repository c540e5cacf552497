// SPDX-License-Identifier: Apache-2.0
// Graph operations: adding nodes, cloning into executable graphs, launching.
#include "simgpu/cuda/graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "simgpu/cuda/api_call.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {

namespace {

void NotifyGraph(uint32_t id, Graph& graph, void* exec = nullptr) {
  ResourceEvent event{};
  event.id = id;
  event.graph = &graph;
  event.graph_exec = exec;
  NotifyResource(event);
}

void NotifyNode(uint32_t id, Graph& graph, Node* node, uint32_t type) {
  ResourceEvent event{};
  event.id = id;
  event.graph = &graph;
  event.node = node;
  event.node_type = type;
  NotifyResource(event);
}

// Ids as the real driver's: the graph's, then the node's place in it. Needs the driver's mutex.
uint64_t NextNode(const Graph& graph) { return uint64_t{graph.id} << 32 | graph.nodes.size(); }

}  // namespace

Graph& MakeGraph() {
  Driver& driver = TheDriver();
  Graph* graph = nullptr;
  {
    const std::lock_guard lock(driver.mutex);
    graph = driver.graphs.emplace_back(std::make_unique<Graph>(driver.next_graph++)).get();
  }
  NotifyGraph(GPUSONDE_CUPTI_RESOURCE_GRAPH_CREATED, *graph);
  return *graph;
}

Node& AddNode(Graph& graph, uint32_t type, std::vector<Node*> dependencies) {
  NotifyNode(GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING, graph, nullptr, type);
  Node* node = nullptr;
  {
    const std::lock_guard lock(TheDriver().mutex);
    node = graph.nodes.emplace_back(std::make_unique<Node>(&graph, NextNode(graph), type)).get();
    node->dependencies = std::move(dependencies);
  }
  NotifyNode(GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED, graph, node, type);
  return *node;
}

Node& CaptureNode(Stream& stream, uint32_t type) {
  Node& node = AddNode(*stream.capture->graph, type, stream.last_captured);
  const std::lock_guard lock(TheDriver().mutex);
  stream.last_captured = {&node};
  return node;
}

void CloneInto(Graph& clone, const Graph& original) {
  std::unordered_map<const Node*, Node*> cloned;
  for (const auto& node : original.nodes) {
    NotifyNode(GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING, clone, nullptr, node->type);
    Node* copy = nullptr;
    {
      const std::lock_guard lock(TheDriver().mutex);
      const uint64_t id = NextNode(clone);
      copy = clone.nodes.emplace_back(std::make_unique<Node>(*node)).get();
      copy->graph = &clone;
      copy->id = id;
      for (Node*& dependency : copy->dependencies) dependency = cloned.at(dependency);
    }
    cloned[node.get()] = copy;
    NotifyNode(GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED, clone, copy, copy->type);
    ResourceEvent event{};
    event.id = GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CLONED;
    event.graph = &clone;
    event.original_graph = node->graph;
    event.node = copy;
    event.original_node = node.get();
    event.node_type = node->type;
    NotifyResource(event);
  }
}

GraphExec& Instantiate(Graph& graph) {
  Driver& driver = TheDriver();
  const ToolCallbacks* tool = AttachedTool();
  uint32_t id = 0;
  {
    const std::lock_guard lock(driver.mutex);
    id = driver.next_graph++;
  }
  auto* exec = new GraphExec(id, tool != nullptr && tool->graph_trace());
  NotifyGraph(GPUSONDE_CUPTI_RESOURCE_GRAPH_CREATED, exec->graph);
  CloneInto(exec->graph, graph);
  NotifyGraph(GPUSONDE_CUPTI_RESOURCE_GRAPHEXEC_CREATE_STARTING, graph, exec);
  {
    const std::lock_guard lock(driver.mutex);
    exec->internal =
        std::make_unique<Node>(&exec->graph, NextNode(exec->graph), GPUSONDE_CU_GRAPH_NODE_KERNEL);
    for (const auto& node : exec->graph.nodes)
      if (node->type == GPUSONDE_CU_GRAPH_NODE_KERNEL) node->grid_id = ++CurrentContext()->kernels;
  }
  NotifyNode(GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED, exec->graph, exec->internal.get(),
             GPUSONDE_CU_GRAPH_NODE_KERNEL);
  NotifyGraph(GPUSONDE_CUPTI_RESOURCE_GRAPHEXEC_CREATED, graph, exec);
  return *exec;
}

void Run(const GraphExec& exec, Stream& stream) {
  const ToolCallbacks* tool = AttachedTool();
  GraphPlace place{.graph_id = exec.id};
  place.silent = exec.traced_whole && tool != nullptr && tool->graph_trace();
  int64_t begin_ns = 0;
  {
    const std::lock_guard lock(TheDriver().mutex);
    begin_ns = ReadyNs(stream);
  }
  std::unordered_map<const Node*, int64_t> done_ns;
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = begin_ns;
  for (const auto& node : exec.graph.nodes) {
    int64_t ready_ns = begin_ns;
    for (const Node* dependency : node->dependencies) ready_ns = std::max(ready_ns, done_ns.at(dependency));
    place.node_id = node->id;
    place.grid_id = node->grid_id;
    Placed placed{ready_ns, ready_ns};
    switch (node->type) {
      case GPUSONDE_CU_GRAPH_NODE_KERNEL:
        placed = SubmitLaunch(stream, node->launch, ready_ns, place);
        break;
      case GPUSONDE_CU_GRAPH_NODE_MEMCPY:
        placed = SubmitTransfer(stream, node->transfer, ready_ns, place);
        break;
      case GPUSONDE_CU_GRAPH_NODE_MEMSET:
        placed = SubmitFill(stream, node->fill, ready_ns, place);
        break;
      default:
        break;  // empty nodes only order others
    }
    done_ns[node.get()] = placed.end_ns;
    first_ns = std::min(first_ns, placed.start_ns);
    last_ns = std::max(last_ns, placed.end_ns);
  }
  {
    const std::lock_guard lock(TheDriver().mutex);
    Occupy(stream, last_ns);
  }
  if (!place.silent) return;
  Operation operation{};
  operation.kind = OperationKind::kGraph;
  operation.correlation_id = CorrelationId();
  operation.device = stream.context.device;
  operation.context_id = stream.context.id;
  operation.stream_id = stream.id;
  operation.submitted_ns = NowNs();
  operation.start_ns = std::min(first_ns, last_ns);
  operation.end_ns = last_ns;
  operation.graph_id = exec.id;
  tool->operation(operation);
}

}  // namespace simgpu::cuda
