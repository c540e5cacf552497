// SPDX-License-Identifier: Apache-2.0
// CUDA graphs.
#include <map>
#include <vector>

#include "simgpu/tests/client.h"
#include "simgpu/tests/tool.h"

namespace simgpu::tests {
namespace {

gpusonde_cu_kernel_node KernelNode(void* function, void** params) {
  gpusonde_cu_kernel_node node{};
  node.function = function;
  node.grid_x = node.grid_y = node.grid_z = node.block_x = node.block_y = node.block_z = 1;
  node.params = params;
  return node;
}

TEST(Graphs, NodesRunInTheOrderOfTheirDependencies) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    client.Load();
    void* graph = nullptr;
    client.cuGraphCreate(&graph, 0);
    uint64_t duration_ns = 50 * kMs;  // long, for hosts that are busy
    void* params[] = {&duration_ns};
    const gpusonde_cu_kernel_node kernel = KernelNode(client.timed, params);
    void* first = nullptr;
    void* left = nullptr;
    void* right = nullptr;
    void* last = nullptr;
    ASSERT_EQ(client.cuGraphAddKernelNode_v2(&first, graph, nullptr, 0, &kernel), 0);
    duration_ns = 100 * kMs;
    ASSERT_EQ(client.cuGraphAddKernelNode_v2(&left, graph, &first, 1, &kernel), 0);
    ASSERT_EQ(client.cuGraphAddKernelNode_v2(&right, graph, &first, 1, &kernel), 0);
    void* both[] = {left, right};
    ASSERT_EQ(client.cuGraphAddKernelNode_v2(&last, graph, both, 2, &kernel), 0);
    void* exec = nullptr;
    ASSERT_EQ(client.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    const int64_t begin_ns = MonotonicNs();
    ASSERT_EQ(client.cuGraphLaunch(exec, client.stream), 0);
    client.cuStreamSynchronize(client.stream);
    EXPECT_GE(MonotonicNs() - begin_ns, 250 * kMs) << "50, then 100 twice at once, then 100";
    EXPECT_LT(MonotonicNs() - begin_ns, 325 * kMs);
    EXPECT_EQ(client.Account().kernels, 4);
    EXPECT_EQ(client.cuGraphExecDestroy(exec), 0);
    EXPECT_EQ(client.cuGraphDestroy(graph), 0);
  });
}

TEST(Graphs, CapturedWorkDoesNotRunUntilTheGraphIsLaunched) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    client.Load();
    void* other = nullptr;
    void* event = nullptr;
    void* joined = nullptr;
    client.cuStreamCreate(&other, GPUSONDE_CU_STREAM_NON_BLOCKING);
    client.cuEventCreate(&event, 0);
    client.cuEventCreate(&joined, 0);
    EXPECT_EQ(client.cuStreamBeginCapture_v2(nullptr, 0), GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ASSERT_EQ(client.cuStreamBeginCapture_v2(client.stream, 0), 0);
    client.Launch(kMs, client.stream);
    client.cuEventRecord(event, client.stream);
    client.cuStreamWaitEvent(other, event, 0);  // `other` joins the capture
    client.Launch(kMs, other);
    client.cuEventRecord(joined, other);
    client.cuStreamWaitEvent(client.stream, joined, 0);
    client.Launch(kMs, client.stream);
    EXPECT_EQ(client.cuStreamSynchronize(client.stream), GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    void* graph = nullptr;
    EXPECT_EQ(client.cuStreamEndCapture(other, &graph), GPUSONDE_CU_ERROR_STREAM_CAPTURE_UNMATCHED);
    ASSERT_EQ(client.cuStreamEndCapture(client.stream, &graph), 0);
    EXPECT_EQ(client.Account().kernels, 0);
    void* exec = nullptr;
    ASSERT_EQ(client.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    for (int i = 0; i < 5; ++i) client.cuGraphLaunch(exec, client.stream);
    client.cuStreamSynchronize(client.stream);
    EXPECT_EQ(client.Account().kernels, 15);
    EXPECT_EQ(client.Launch(kMs, other), 0) << "it is an ordinary stream again";
  });
}

TEST(Graphs, NodeIdsLeadFromRecordsBackToWhereNodesWereCreated) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    tool.Subscribe();
    tool.EnableDomain(GPUSONDE_CUPTI_DOMAIN_RESOURCE);
    static std::map<uint64_t, uint64_t> original_of;
    static std::vector<uint64_t> created;
    auto* node_id = Symbol<gpusonde_cupti_get_graph_node_id_fn>(tool.cupti, "cuptiGetGraphNodeId");
    static gpusonde_cupti_get_graph_node_id_fn* get_id = node_id;
    tool.on_callback = [](uint32_t domain, uint32_t id, const void* data) {
      if (domain != GPUSONDE_CUPTI_DOMAIN_RESOURCE) return;
      const auto* resource = static_cast<const gpusonde_cupti_resource_data*>(data);
      if (id != GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED && id != GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CLONED)
        return;
      const auto* graph = static_cast<const gpusonde_cupti_graph_data*>(resource->descriptor);
      uint64_t node = 0;
      EXPECT_EQ(get_id(graph->node, &node), 0);
      if (id == GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED) {
        created.push_back(node);
      } else {
        uint64_t original = 0;
        EXPECT_EQ(get_id(graph->original_node, &original), 0);
        original_of[node] = original;
      }
    };
    tool.EnableKind(GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL);
    client.Load();
    client.cuStreamBeginCapture_v2(client.stream, 0);
    client.Launch(1000, client.stream);
    client.Launch(1000, client.stream);
    void* graph = nullptr;
    void* exec = nullptr;
    client.cuStreamEndCapture(client.stream, &graph);
    client.cuGraphInstantiateWithFlags(&exec, graph, 0);
    // Clones are reported as created first, and the driver adds a node of its own.
    ASSERT_EQ(created.size(), 5U);
    for (int i = 0; i < 3; ++i) client.cuGraphLaunch(exec, client.stream);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    ASSERT_EQ(tool.kernels.size(), 6U);
    std::map<uint64_t, int> seen;
    for (const auto& kernel : tool.kernels) {
      ASSERT_TRUE(original_of.contains(kernel.graph_node_id));
      EXPECT_NE(kernel.graph_id, 0U);
      ++seen[original_of[kernel.graph_node_id]];
    }
    EXPECT_EQ(seen[created[0]], 3);
    EXPECT_EQ(seen[created[1]], 3);
  });
}

TEST(Graphs, AGraphTracedAsAWholeIsOneRecordWithoutItsNodes) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    tool.EnableKind(GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL);
    tool.EnableKind(GPUSONDE_CUPTI_KIND_GRAPH_TRACE);
    client.Load();
    client.cuStreamBeginCapture_v2(client.stream, 0);
    client.Launch(2 * kMs, client.stream);
    client.Launch(3 * kMs, client.stream);
    void* graph = nullptr;
    void* exec = nullptr;
    client.cuStreamEndCapture(client.stream, &graph);
    client.cuGraphInstantiateWithFlags(&exec, graph, 0);
    client.cuGraphLaunch(exec, client.stream);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    EXPECT_TRUE(tool.kernels.empty());
    ASSERT_EQ(tool.graphs.size(), 1U);
    EXPECT_EQ(tool.graphs[0].end - tool.graphs[0].start, 5 * kMs);
  });
}

}  // namespace
}  // namespace simgpu::tests
