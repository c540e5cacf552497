// SPDX-License-Identifier: Apache-2.0
// Graph operations: adding nodes, cloning into executable graphs, launching.
#include "simgpu/cuda/graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "simgpu/cuda/api_call.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::cuda {

Graph& MakeGraph() {
  Driver& driver = TheDriver();
  Graph* graph = nullptr;
  {
    const std::lock_guard lock(driver.mutex);
    graph = driver.graphs.emplace_back(std::make_unique<Graph>(driver.next_graph++)).get();
  }
  ResourceEvent event{};
  event.id = GPUSONDE_CUPTI_RESOURCE_GRAPH_CREATED;
  event.graph = graph;
  NotifyResource(event);
  return *graph;
}

Node& AddNode(Graph& graph, uint32_t type, std::vector<Node*> dependencies) {
  ResourceEvent event{};
  event.id = GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING;
  event.graph = &graph;
  event.node_type = type;
  NotifyResource(event);
  Driver& driver = TheDriver();
  Node* node = nullptr;
  {
    const std::lock_guard lock(driver.mutex);
    node = graph.nodes.emplace_back(std::make_unique<Node>(&graph, driver.next_node++, type)).get();
    node->dependencies = std::move(dependencies);
  }
  event.id = GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED;
  event.node = node;
  NotifyResource(event);
  return *node;
}

Node& CaptureNode(Stream& stream, uint32_t type) {
  Node& node = AddNode(*stream.capture->graph, type, stream.last_captured);
  const std::lock_guard lock(TheDriver().mutex);
  stream.last_captured = {&node};
  return node;
}

void CloneInto(Graph& clone, const Graph& original, void* exec) {
  Driver& driver = TheDriver();
  std::unordered_map<const Node*, Node*> cloned;
  for (const auto& node : original.nodes) {
    Node* copy = nullptr;
    {
      const std::lock_guard lock(driver.mutex);
      copy = clone.nodes.emplace_back(std::make_unique<Node>(*node)).get();
      copy->graph = &clone;
      copy->id = driver.next_node++;
      for (Node*& dependency : copy->dependencies) dependency = cloned.at(dependency);
    }
    cloned[node.get()] = copy;
    ResourceEvent event{};
    event.id = GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CLONED;
    event.graph = &clone;
    event.original_graph = node->graph;
    event.node = copy;
    event.original_node = node.get();
    event.node_type = node->type;
    event.graph_exec = exec;
    NotifyResource(event);
  }
}

GraphExec& Instantiate(const Graph& graph) {
  ResourceEvent event{};
  event.id = GPUSONDE_CUPTI_RESOURCE_GRAPHEXEC_CREATE_STARTING;
  event.graph = const_cast<Graph*>(&graph);
  NotifyResource(event);
  Driver& driver = TheDriver();
  const Listener* listener = TheListener();
  uint32_t id = 0;
  {
    const std::lock_guard lock(driver.mutex);
    id = driver.next_graph++;
  }
  auto* exec = new GraphExec(id, listener != nullptr && listener->graph_trace());
  CloneInto(exec->graph, graph, exec);
  event.id = GPUSONDE_CUPTI_RESOURCE_GRAPHEXEC_CREATED;
  event.graph_exec = exec;
  NotifyResource(event);
  return *exec;
}

void Run(const GraphExec& exec, Stream& stream) {
  const Listener* listener = TheListener();
  GraphPlace place{.graph_id = exec.id, .node_id = 0, .silent = false};
  place.silent = exec.traced_whole && listener != nullptr && listener->graph_trace();
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
  listener->operation(operation);
}

}  // namespace simgpu::cuda
