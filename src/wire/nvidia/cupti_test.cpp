// SPDX-License-Identifier: Apache-2.0
// Compares our declarations of CUPTI's and NVTX's ABI with NVIDIA's own headers, where the build found them.
#include "wire/nvidia/cupti.h"

#include <gtest/gtest.h>

#include "wire/nvidia/cupti_callbacks.h"
#include "wire/nvidia/nvtx.h"

#ifdef GPUSONDE_CUPTI_HEADERS

#include <cupti.h>
#include <nvtx3/nvToolsExt.h>

#include <type_traits>

namespace {

#define SAME_VALUE(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
// Offset and size of one field.
#define SAME_FIELD(ours, field, theirs, their_field)                      \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field) && \
                sizeof(std::declval<ours&>().field) == sizeof(std::declval<theirs&>().their_field))

SAME_VALUE(GPUSONDE_CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_INVALID_DEVICE, CUPTI_ERROR_INVALID_DEVICE);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_INVALID_CONTEXT, CUPTI_ERROR_INVALID_CONTEXT);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_NOT_READY, CUPTI_ERROR_NOT_READY);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
           CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME_VALUE(GPUSONDE_CUPTI_ERROR_UNKNOWN, CUPTI_ERROR_UNKNOWN);

SAME_VALUE(GPUSONDE_CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_VALUE(GPUSONDE_CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME_VALUE(GPUSONDE_CUPTI_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME_VALUE(GPUSONDE_CUPTI_DOMAIN_SYNCHRONIZE, CUPTI_CB_DOMAIN_SYNCHRONIZE);
SAME_VALUE(GPUSONDE_CUPTI_DOMAIN_NVTX, CUPTI_CB_DOMAIN_NVTX);
SAME_VALUE(GPUSONDE_CUPTI_DOMAIN_STATE, CUPTI_CB_DOMAIN_STATE);
SAME_VALUE(GPUSONDE_CUPTI_API_ENTER, CUPTI_API_ENTER);
SAME_VALUE(GPUSONDE_CUPTI_API_EXIT, CUPTI_API_EXIT);

#define SAME_RESOURCE(name) SAME_VALUE(GPUSONDE_CUPTI_RESOURCE_##name, CUPTI_CBID_RESOURCE_##name)
SAME_RESOURCE(CONTEXT_CREATED);
SAME_RESOURCE(CONTEXT_DESTROY_STARTING);
SAME_RESOURCE(STREAM_CREATED);
SAME_RESOURCE(STREAM_DESTROY_STARTING);
SAME_RESOURCE(CU_INIT_FINISHED);
SAME_RESOURCE(MODULE_LOADED);
SAME_RESOURCE(MODULE_UNLOAD_STARTING);
SAME_RESOURCE(GRAPH_CREATED);
SAME_RESOURCE(GRAPH_DESTROY_STARTING);
SAME_RESOURCE(GRAPH_CLONED);
SAME_RESOURCE(GRAPHNODE_CREATE_STARTING);
SAME_RESOURCE(GRAPHNODE_CREATED);
SAME_RESOURCE(GRAPHNODE_DESTROY_STARTING);
SAME_RESOURCE(GRAPHEXEC_CREATE_STARTING);
SAME_RESOURCE(GRAPHEXEC_CREATED);
SAME_RESOURCE(GRAPHEXEC_DESTROY_STARTING);
SAME_RESOURCE(GRAPHNODE_CLONED);
SAME_VALUE(GPUSONDE_CUPTI_STATE_FATAL_ERROR, CUPTI_CBID_STATE_FATAL_ERROR);
SAME_VALUE(GPUSONDE_CUPTI_STATE_ERROR, CUPTI_CBID_STATE_ERROR);
SAME_VALUE(GPUSONDE_CUPTI_STATE_WARNING, CUPTI_CBID_STATE_WARNING);

#define SAME_RUNTIME_CALL(name, id, what) SAME_VALUE(id, CUPTI_RUNTIME_TRACE_CBID_##name);
GPUSONDE_CUPTI_RUNTIME_CALLS(SAME_RUNTIME_CALL)
#define SAME_DRIVER_CALL(name, id, what) SAME_VALUE(id, CUPTI_DRIVER_TRACE_CBID_##name);
GPUSONDE_CUPTI_DRIVER_CALLS(SAME_DRIVER_CALL)
#define SAME_CLONING_CALL(name, id) SAME_VALUE(id, CUPTI_DRIVER_TRACE_CBID_##name);
GPUSONDE_CUPTI_DRIVER_CLONING_CALLS(SAME_CLONING_CALL)

#define SAME_KIND(name) SAME_VALUE(GPUSONDE_CUPTI_KIND_##name, CUPTI_ACTIVITY_KIND_##name)
SAME_KIND(MEMCPY);
SAME_KIND(MEMSET);
SAME_KIND(KERNEL);
SAME_KIND(DRIVER);
SAME_KIND(RUNTIME);
SAME_KIND(CONCURRENT_KERNEL);
SAME_KIND(OVERHEAD);
SAME_KIND(MEMCPY2);
SAME_KIND(SYNCHRONIZATION);
SAME_KIND(GRAPH_TRACE);

#define SAME_COPY(name) SAME_VALUE(GPUSONDE_CUPTI_MEMCPY_##name, CUPTI_ACTIVITY_MEMCPY_KIND_##name)
SAME_COPY(UNKNOWN);
SAME_COPY(HTOD);
SAME_COPY(DTOH);
SAME_COPY(HTOA);
SAME_COPY(ATOH);
SAME_COPY(ATOA);
SAME_COPY(ATOD);
SAME_COPY(DTOA);
SAME_COPY(DTOD);
SAME_COPY(HTOH);
SAME_COPY(PTOP);
#define SAME_MEMORY(name) SAME_VALUE(GPUSONDE_CUPTI_MEMORY_##name, CUPTI_ACTIVITY_MEMORY_KIND_##name)
SAME_MEMORY(UNKNOWN);
SAME_MEMORY(PAGEABLE);
SAME_MEMORY(PINNED);
SAME_MEMORY(DEVICE);
SAME_MEMORY(ARRAY);
SAME_MEMORY(MANAGED);
SAME_MEMORY(DEVICE_STATIC);
SAME_MEMORY(MANAGED_STATIC);
SAME_VALUE(GPUSONDE_CUPTI_SYNC_UNKNOWN, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN);
SAME_VALUE(GPUSONDE_CUPTI_SYNC_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
SAME_VALUE(GPUSONDE_CUPTI_SYNC_STREAM_WAIT_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
SAME_VALUE(GPUSONDE_CUPTI_SYNC_STREAM, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
SAME_VALUE(GPUSONDE_CUPTI_SYNC_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
SAME_VALUE(GPUSONDE_CUPTI_OVERHEAD_DRIVER_COMPILER, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
SAME_VALUE(GPUSONDE_CUPTI_OVERHEAD_BUFFER_FLUSH, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
SAME_VALUE(GPUSONDE_CUPTI_OVERHEAD_INSTRUMENTATION, CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION);
SAME_VALUE(GPUSONDE_CUPTI_OVERHEAD_RESOURCE, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
SAME_VALUE(GPUSONDE_CUPTI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
SAME_VALUE(GPUSONDE_CUPTI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
SAME_VALUE(GPUSONDE_CUPTI_FLAG_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_VALUE(GPUSONDE_CUPTI_INVALID_ID, CUPTI_INVALID_STREAM_ID);
SAME_VALUE(GPUSONDE_CUPTI_INVALID_ID, CUPTI_INVALID_CONTEXT_ID);
SAME_VALUE(GPUSONDE_CUPTI_INVALID_ID, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
SAME_VALUE(GPUSONDE_CUPTI_ATTR_DEVICE_BUFFER_SIZE, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
SAME_VALUE(GPUSONDE_CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME_VALUE(GPUSONDE_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME_VALUE(GPUSONDE_CUPTI_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE,
           CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE);
SAME_VALUE(GPUSONDE_CUPTI_ATTR_PER_THREAD_ACTIVITY_BUFFER, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
SAME_VALUE(GPUSONDE_CU_GRAPH_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL);
SAME_VALUE(GPUSONDE_CU_GRAPH_NODE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME_VALUE(GPUSONDE_CU_GRAPH_NODE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET);
SAME_VALUE(GPUSONDE_CU_GRAPH_NODE_HOST, CU_GRAPH_NODE_TYPE_HOST);

#define SAME_CALL(ours, theirs) SAME_FIELD(gpusonde_cupti_callback_data, ours, CUpti_CallbackData, theirs)
SAME_CALL(site, callbackSite);
SAME_CALL(function_name, functionName);
SAME_CALL(function_params, functionParams);
SAME_CALL(function_return_value, functionReturnValue);
SAME_CALL(symbol_name, symbolName);
SAME_CALL(context, context);
SAME_CALL(context_uid, contextUid);
SAME_CALL(correlation_data, correlationData);
SAME_CALL(correlation_id, correlationId);
SAME_FIELD(gpusonde_cupti_resource_data, context, CUpti_ResourceData, context);
SAME_FIELD(gpusonde_cupti_resource_data, stream, CUpti_ResourceData, resourceHandle.stream);
SAME_FIELD(gpusonde_cupti_resource_data, descriptor, CUpti_ResourceData, resourceDescriptor);
#define SAME_GRAPH(ours, theirs) SAME_FIELD(gpusonde_cupti_graph_data, ours, CUpti_GraphData, theirs)
SAME_GRAPH(graph, graph);
SAME_GRAPH(original_graph, originalGraph);
SAME_GRAPH(node, node);
SAME_GRAPH(original_node, originalNode);
SAME_GRAPH(node_type, nodeType);
SAME_GRAPH(dependency, dependency);
SAME_GRAPH(graph_exec, graphExec);
SAME_FIELD(gpusonde_cupti_state_data, result, CUpti_StateData, notification.result);
SAME_FIELD(gpusonde_cupti_state_data, message, CUpti_StateData, notification.message);
#define SAME_SUBSCRIBER(ours, theirs) \
  SAME_FIELD(gpusonde_cupti_subscriber_params, ours, CUpti_SubscriberParams, theirs)
SAME_SUBSCRIBER(struct_size, structSize);
SAME_SUBSCRIBER(subscriber_name, subscriberName);
SAME_SUBSCRIBER(old_subscriber_name, oldSubscriberName);
SAME_SUBSCRIBER(old_subscriber_size, oldSubscriberSize);
SAME_VALUE(GPUSONDE_CUPTI_OLD_SUBSCRIBER_NAME_BYTES, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);

#define SAME_KERNEL(ours, theirs) SAME_FIELD(gpusonde_cupti_kernel, ours, CUpti_ActivityKernel10, theirs)
SAME_KERNEL(kind, kind);
SAME_KERNEL(registers_per_thread, registersPerThread);
SAME_KERNEL(start, start);
SAME_KERNEL(end, end);
SAME_KERNEL(completed, completed);
SAME_KERNEL(device_id, deviceId);
SAME_KERNEL(context_id, contextId);
SAME_KERNEL(stream_id, streamId);
SAME_KERNEL(grid_x, gridX);
SAME_KERNEL(grid_y, gridY);
SAME_KERNEL(grid_z, gridZ);
SAME_KERNEL(block_x, blockX);
SAME_KERNEL(block_y, blockY);
SAME_KERNEL(block_z, blockZ);
SAME_KERNEL(static_shared_memory, staticSharedMemory);
SAME_KERNEL(dynamic_shared_memory, dynamicSharedMemory);
SAME_KERNEL(local_memory_per_thread, localMemoryPerThread);
SAME_KERNEL(correlation_id, correlationId);
SAME_KERNEL(grid_id, gridId);
SAME_KERNEL(name, name);
SAME_KERNEL(queued, queued);
SAME_KERNEL(submitted, submitted);
SAME_KERNEL(launch_type, launchType);
SAME_KERNEL(shared_memory_executed, sharedMemoryExecuted);
SAME_KERNEL(graph_node_id, graphNodeId);
SAME_KERNEL(graph_id, graphId);
SAME_KERNEL(channel_id, channelID);
SAME_KERNEL(channel_type, channelType);
SAME_KERNEL(cluster_x, clusterX);
SAME_KERNEL(local_memory_total_v2, localMemoryTotal_v2);
SAME_KERNEL(max_active_clusters, maxActiveClusters);
SAME_KERNEL(is_device_launched, isDeviceLaunched);
SAME_VALUE(sizeof(gpusonde_cupti_kernel), sizeof(CUpti_ActivityKernel10));
SAME_VALUE(GPUSONDE_CUPTI_KERNEL9_BYTES, sizeof(CUpti_ActivityKernel9));
// The fields that we read from every CUPTI version have kept their offsets since CUDA 11.
SAME_FIELD(gpusonde_cupti_kernel, name, CUpti_ActivityKernel5, name);
SAME_FIELD(gpusonde_cupti_kernel, correlation_id, CUpti_ActivityKernel5, correlationId);
SAME_FIELD(gpusonde_cupti_kernel, graph_node_id, CUpti_ActivityKernel5, graphNodeId);
SAME_FIELD(gpusonde_cupti_kernel, graph_id, CUpti_ActivityKernel5, graphId);

#define SAME_MEMCPY(ours, theirs) SAME_FIELD(gpusonde_cupti_memcpy, ours, CUpti_ActivityMemcpy6, theirs)
SAME_MEMCPY(kind, kind);
SAME_MEMCPY(copy_kind, copyKind);
SAME_MEMCPY(source_kind, srcKind);
SAME_MEMCPY(target_kind, dstKind);
SAME_MEMCPY(flags, flags);
SAME_MEMCPY(bytes, bytes);
SAME_MEMCPY(start, start);
SAME_MEMCPY(end, end);
SAME_MEMCPY(device_id, deviceId);
SAME_MEMCPY(context_id, contextId);
SAME_MEMCPY(stream_id, streamId);
SAME_MEMCPY(correlation_id, correlationId);
SAME_MEMCPY(runtime_correlation_id, runtimeCorrelationId);
SAME_MEMCPY(graph_node_id, graphNodeId);
SAME_MEMCPY(graph_id, graphId);
SAME_MEMCPY(is_device_launched, isDeviceLaunched);
SAME_MEMCPY(copy_count, copyCount);
SAME_VALUE(sizeof(gpusonde_cupti_memcpy), sizeof(CUpti_ActivityMemcpy6));
SAME_VALUE(GPUSONDE_CUPTI_MEMCPY5_BYTES, sizeof(CUpti_ActivityMemcpy5));
SAME_FIELD(gpusonde_cupti_memcpy, graph_node_id, CUpti_ActivityMemcpy5, graphNodeId);

#define SAME_PEER(ours, theirs) \
  SAME_FIELD(gpusonde_cupti_memcpy_peer, ours, CUpti_ActivityMemcpyPtoP4, theirs)
SAME_PEER(copy_kind, copyKind);
SAME_PEER(flags, flags);
SAME_PEER(bytes, bytes);
SAME_PEER(start, start);
SAME_PEER(end, end);
SAME_PEER(device_id, deviceId);
SAME_PEER(context_id, contextId);
SAME_PEER(stream_id, streamId);
SAME_PEER(source_device_id, srcDeviceId);
SAME_PEER(target_context_id, dstContextId);
SAME_PEER(correlation_id, correlationId);
SAME_PEER(graph_node_id, graphNodeId);
SAME_PEER(channel_type, channelType);
SAME_VALUE(sizeof(gpusonde_cupti_memcpy_peer), sizeof(CUpti_ActivityMemcpyPtoP4));

#define SAME_MEMSET(ours, theirs) SAME_FIELD(gpusonde_cupti_memset, ours, CUpti_ActivityMemset4, theirs)
SAME_MEMSET(value, value);
SAME_MEMSET(bytes, bytes);
SAME_MEMSET(start, start);
SAME_MEMSET(end, end);
SAME_MEMSET(device_id, deviceId);
SAME_MEMSET(context_id, contextId);
SAME_MEMSET(stream_id, streamId);
SAME_MEMSET(correlation_id, correlationId);
SAME_MEMSET(flags, flags);
SAME_MEMSET(memory_kind, memoryKind);
SAME_MEMSET(graph_node_id, graphNodeId);
SAME_MEMSET(graph_id, graphId);
SAME_MEMSET(is_device_launched, isDeviceLaunched);
SAME_VALUE(sizeof(gpusonde_cupti_memset), sizeof(CUpti_ActivityMemset4));

#define SAME_SYNC(ours, theirs) \
  SAME_FIELD(gpusonde_cupti_synchronization, ours, CUpti_ActivitySynchronization2, theirs)
SAME_SYNC(type, type);
SAME_SYNC(start, start);
SAME_SYNC(end, end);
SAME_SYNC(correlation_id, correlationId);
SAME_SYNC(context_id, contextId);
SAME_SYNC(stream_id, streamId);
SAME_SYNC(cuda_event_id, cudaEventId);
SAME_SYNC(cuda_event_sync_id, cudaEventSyncId);
SAME_SYNC(return_value, returnValue);
SAME_VALUE(sizeof(gpusonde_cupti_synchronization), sizeof(CUpti_ActivitySynchronization2));
SAME_VALUE(offsetof(gpusonde_cupti_synchronization, cuda_event_sync_id),
           sizeof(CUpti_ActivitySynchronization));

#define SAME_OVERHEAD(ours, theirs) SAME_FIELD(gpusonde_cupti_overhead, ours, CUpti_ActivityOverhead3, theirs)
SAME_OVERHEAD(overhead_kind, overheadKind);
SAME_OVERHEAD(object_kind, objectKind);
SAME_OVERHEAD(object_id, objectId);
SAME_OVERHEAD(start, start);
SAME_OVERHEAD(end, end);
SAME_OVERHEAD(correlation_id, correlationId);
SAME_OVERHEAD(overhead_data, overheadData);
SAME_VALUE(sizeof(gpusonde_cupti_overhead), sizeof(CUpti_ActivityOverhead3));

#define SAME_TRACE(ours, theirs) \
  SAME_FIELD(gpusonde_cupti_graph_trace, ours, CUpti_ActivityGraphTrace2, theirs)
SAME_TRACE(correlation_id, correlationId);
SAME_TRACE(start, start);
SAME_TRACE(end, end);
SAME_TRACE(device_id, deviceId);
SAME_TRACE(graph_id, graphId);
SAME_TRACE(context_id, contextId);
SAME_TRACE(stream_id, streamId);
SAME_TRACE(end_device_id, endDeviceId);
SAME_TRACE(end_context_id, endContextId);
SAME_VALUE(sizeof(gpusonde_cupti_graph_trace), sizeof(CUpti_ActivityGraphTrace2));

SAME_VALUE(GPUSONDE_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME_VALUE(GPUSONDE_NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME_VALUE(GPUSONDE_NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME_VALUE(GPUSONDE_NVTX_CORE_RANGE_START_EX, NVTX_CBID_CORE_RangeStartEx);
SAME_VALUE(GPUSONDE_NVTX_CORE_RANGE_START_A, NVTX_CBID_CORE_RangeStartA);
SAME_VALUE(GPUSONDE_NVTX_CORE_RANGE_END, NVTX_CBID_CORE_RangeEnd);
SAME_VALUE(GPUSONDE_NVTX_CORE_RANGE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME_VALUE(GPUSONDE_NVTX_CORE_RANGE_PUSH_A, NVTX_CBID_CORE_RangePushA);
SAME_VALUE(GPUSONDE_NVTX_CORE_RANGE_PUSH_W, NVTX_CBID_CORE_RangePushW);
SAME_VALUE(GPUSONDE_NVTX_CORE_RANGE_POP, NVTX_CBID_CORE_RangePop);
SAME_VALUE(GPUSONDE_NVTX_CORE2_DOMAIN_RANGE_START_EX, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME_VALUE(GPUSONDE_NVTX_CORE2_DOMAIN_RANGE_END, NVTX_CBID_CORE2_DomainRangeEnd);
SAME_VALUE(GPUSONDE_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
SAME_VALUE(GPUSONDE_NVTX_CORE2_DOMAIN_RANGE_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME_VALUE(GPUSONDE_NVTX_CORE2_DOMAIN_REGISTER_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME_VALUE(GPUSONDE_NVTX_CORE2_DOMAIN_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);
SAME_VALUE(GPUSONDE_NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME_VALUE(GPUSONDE_NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME_FIELD(gpusonde_nvtx_attributes, version, nvtxEventAttributes_t, version);
SAME_FIELD(gpusonde_nvtx_attributes, size, nvtxEventAttributes_t, size);
SAME_FIELD(gpusonde_nvtx_attributes, message_type, nvtxEventAttributes_t, messageType);
SAME_FIELD(gpusonde_nvtx_attributes, message, nvtxEventAttributes_t, message);
SAME_VALUE(sizeof(gpusonde_nvtx_attributes), sizeof(nvtxEventAttributes_t));
SAME_FIELD(gpusonde_nvtx_callbacks, struct_size, NvtxExportTableCallbacks, struct_size);
SAME_FIELD(gpusonde_nvtx_callbacks, get_module_function_table, NvtxExportTableCallbacks,
           GetModuleFunctionTable);

}  // namespace

#endif

TEST(CuptiAbi, MatchesNvidiasHeaders) {
#ifdef GPUSONDE_CUPTI_HEADERS
  SUCCEED() << "compared by static_assert with CUPTI " << CUPTI_API_VERSION;
#else
  GTEST_SKIP() << "this machine has no CUDA toolkit (cupti_activity.h) to compare with";
#endif
}
