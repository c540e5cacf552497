/* SPDX-License-Identifier: Apache-2.0 */
/* The part of CUPTI's ABI that gpusonde uses (and simgpu simulates), declared by us: no CUDA
 * package is needed to build. Linux, 64 bit, CUPTI 12 and 13.
 *
 * Source of every fact: NVIDIA's CUPTI documentation (docs.nvidia.com/cupti, "CUPTI Activity API", "CUPTI
 * Callback API", "CUPTI Results") and CUDA 13.0's cupti_activity.h, cupti_activity_deprecated.h,
 * cupti_callbacks.h and cupti_result.h. cupti_test.cpp compares each with those headers where they are
 * installed.
 *
 * Names are NVIDIA's, in our spelling: CUpti_ActivityKernel10::graphNodeId is
 * gpusonde_cupti_kernel::graph_node_id. Enumerations are 32-bit integers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- results: CUptiResult --- */

typedef int32_t gpusonde_cupti_result;
enum {
  GPUSONDE_CUPTI_SUCCESS = 0,
  GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER = 1,
  GPUSONDE_CUPTI_ERROR_INVALID_DEVICE = 2,
  GPUSONDE_CUPTI_ERROR_INVALID_CONTEXT = 3,
  GPUSONDE_CUPTI_ERROR_INVALID_OPERATION = 7,
  GPUSONDE_CUPTI_ERROR_OUT_OF_MEMORY = 8,
  GPUSONDE_CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT = 10,
  GPUSONDE_CUPTI_ERROR_MAX_LIMIT_REACHED =
      12, /* cuptiActivityGetNextRecord: no further record in this buffer */
  GPUSONDE_CUPTI_ERROR_NOT_READY = 13,
  GPUSONDE_CUPTI_ERROR_NOT_COMPATIBLE = 14,
  GPUSONDE_CUPTI_ERROR_NOT_INITIALIZED = 15,
  GPUSONDE_CUPTI_ERROR_INVALID_KIND = 21,
  GPUSONDE_CUPTI_ERROR_NOT_SUPPORTED = 27,
  GPUSONDE_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
  GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39, /* another tool is subscribed */
  GPUSONDE_CUPTI_ERROR_UNKNOWN = 999
};

/* --- callbacks --- */

/* CUpti_CallbackDomain */
enum {
  GPUSONDE_CUPTI_DOMAIN_DRIVER = 1,
  GPUSONDE_CUPTI_DOMAIN_RUNTIME = 2,
  GPUSONDE_CUPTI_DOMAIN_RESOURCE = 3,
  GPUSONDE_CUPTI_DOMAIN_SYNCHRONIZE = 4,
  GPUSONDE_CUPTI_DOMAIN_NVTX = 5,
  GPUSONDE_CUPTI_DOMAIN_STATE = 6
};

/* CUpti_ApiCallbackSite */
enum { GPUSONDE_CUPTI_API_ENTER = 0, GPUSONDE_CUPTI_API_EXIT = 1 };

/* CUpti_CallbackIdResource */
enum {
  GPUSONDE_CUPTI_RESOURCE_CONTEXT_CREATED = 1,
  GPUSONDE_CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
  GPUSONDE_CUPTI_RESOURCE_STREAM_CREATED = 3,
  GPUSONDE_CUPTI_RESOURCE_STREAM_DESTROY_STARTING = 4,
  GPUSONDE_CUPTI_RESOURCE_CU_INIT_FINISHED = 5,
  GPUSONDE_CUPTI_RESOURCE_MODULE_LOADED = 6,
  GPUSONDE_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING = 7,
  GPUSONDE_CUPTI_RESOURCE_GRAPH_CREATED = 9,
  GPUSONDE_CUPTI_RESOURCE_GRAPH_DESTROY_STARTING = 10,
  GPUSONDE_CUPTI_RESOURCE_GRAPH_CLONED = 11,
  GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATE_STARTING = 12,
  GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CREATED = 13,
  GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_DESTROY_STARTING = 14,
  GPUSONDE_CUPTI_RESOURCE_GRAPHEXEC_CREATE_STARTING = 17,
  GPUSONDE_CUPTI_RESOURCE_GRAPHEXEC_CREATED = 18,
  GPUSONDE_CUPTI_RESOURCE_GRAPHEXEC_DESTROY_STARTING = 19,
  GPUSONDE_CUPTI_RESOURCE_GRAPHNODE_CLONED = 20
};

/* CUpti_CallbackIdState: after FATAL_ERROR, CUPTI has finalised itself. */
enum {
  GPUSONDE_CUPTI_STATE_FATAL_ERROR = 1,
  GPUSONDE_CUPTI_STATE_ERROR = 2,
  GPUSONDE_CUPTI_STATE_WARNING = 3
};

/* CUpti_CallbackData: `data` of a callback in the driver and runtime domains. */
struct gpusonde_cupti_callback_data {
  uint32_t site; /* CUpti_ApiCallbackSite */
  const char* function_name;
  const void* function_params;
  void* function_return_value; /* cudaError_t * or CUresult *; at API_EXIT only */
  const char* symbol_name;     /* the kernel's name; launches only */
  void* context;               /* CUcontext */
  uint32_t context_uid;
  uint64_t* correlation_data; /* 64 bits shared between the entry and the exit of one call */
  uint32_t
      correlation_id; /* that of the activity record; of a nested driver call, that of the runtime call */
};

/* CUpti_ResourceData: `data` of a callback in the resource domain. */
struct gpusonde_cupti_resource_data {
  void* context;    /* CUcontext */
  void* stream;     /* CUstream, for STREAM_* */
  void* descriptor; /* gpusonde_cupti_graph_data for GRAPH*; CUpti_ModuleResourceData for MODULE_* */
};

/* CUpti_GraphData */
struct gpusonde_cupti_graph_data {
  void* graph; /* CUgraph */
  void* original_graph;
  void* node; /* CUgraphNode */
  void* original_node;
  uint32_t node_type; /* CUgraphNodeType */
  void* dependency;
  void* graph_exec; /* CUgraphExec */
};

/* CUgraphNodeType (cuda.h) */
enum {
  GPUSONDE_CU_GRAPH_NODE_KERNEL = 0,
  GPUSONDE_CU_GRAPH_NODE_MEMCPY = 1,
  GPUSONDE_CU_GRAPH_NODE_MEMSET = 2,
  GPUSONDE_CU_GRAPH_NODE_HOST = 3
};

/* CUpti_StateData */
struct gpusonde_cupti_state_data {
  gpusonde_cupti_result result;
  const char* message; /* may be null */
};

/* CUpti_SubscriberParams, of cuptiSubscribe_v2 (CUPTI 12.9 and newer). */
struct gpusonde_cupti_subscriber_params {
  size_t struct_size;
  const char* subscriber_name;
  char* old_subscriber_name; /* receives the current subscriber's name; at least OLD_SUBSCRIBER_NAME_BYTES */
  size_t old_subscriber_size;
};
#define GPUSONDE_CUPTI_OLD_SUBSCRIBER_NAME_BYTES 64

/* --- activity records --- */

/* CUpti_ActivityKind. KERNEL serialises kernels, CONCURRENT_KERNEL does not; both give kernel records.
 * MEMCPY2 is a copy between two devices. With GRAPH_TRACE a graph is one record and its nodes have none. */
enum {
  GPUSONDE_CUPTI_KIND_MEMCPY = 1,
  GPUSONDE_CUPTI_KIND_MEMSET = 2,
  GPUSONDE_CUPTI_KIND_KERNEL = 3,
  GPUSONDE_CUPTI_KIND_DRIVER = 4,
  GPUSONDE_CUPTI_KIND_RUNTIME = 5,
  GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL = 10,
  GPUSONDE_CUPTI_KIND_OVERHEAD = 17,
  GPUSONDE_CUPTI_KIND_MEMCPY2 = 22,
  GPUSONDE_CUPTI_KIND_SYNCHRONIZATION = 38,
  GPUSONDE_CUPTI_KIND_GRAPH_TRACE = 51
};

/* Every record begins with its kind and is aligned to 8 bytes; times are ns of the timestamp callback's
 * clock, 0 when CUPTI could not collect them. Newer versions only append fields: the structs are
 * CUPTI 13.0's, and fields that an older CUPTI doesn't have are marked. Read such a field only if the record
 * is long enough. */

/* CUpti_ActivityKernel10 */
struct gpusonde_cupti_kernel {
  uint32_t kind;
  uint8_t cache_config;
  uint8_t shared_memory_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_global_cache_requested;
  uint32_t partitioned_global_cache_executed;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  int32_t grid_x;
  int32_t grid_y;
  int32_t grid_z;
  int32_t block_x;
  int32_t block_y;
  int32_t block_z;
  int32_t static_shared_memory;
  int32_t dynamic_shared_memory;
  uint32_t local_memory_per_thread;
  uint32_t local_memory_total;
  uint32_t correlation_id;
  int64_t grid_id;
  const char* name; /* mangled; freed when its module is unloaded */
  void* reserved0;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launch_type;
  uint8_t is_shared_memory_carveout_requested;
  uint8_t shared_memory_carveout_requested;
  uint8_t padding;
  uint32_t shared_memory_executed;
  uint64_t graph_node_id; /* 0 outside graphs; since Kernel5 (CUDA 11.0) */
  uint32_t shmem_limit_config;
  uint32_t graph_id;
  /* the above: all of CUPTI 11, 12 and 13 */
  void* access_policy_window;
  uint32_t channel_id;
  uint32_t channel_type;
  uint32_t cluster_x;
  uint32_t cluster_y;
  uint32_t cluster_z;
  uint32_t cluster_scheduling_policy;
  uint64_t local_memory_total_v2;
  uint32_t max_potential_cluster_size;
  uint32_t max_active_clusters;
  uint8_t is_device_launched; /* since Kernel10 (CUDA 13.0) */
  uint8_t padding3[7];
};
#define GPUSONDE_CUPTI_KERNEL9_BYTES 208 /* CUPTI 12.x: the struct up to is_device_launched */

/* CUpti_ActivityMemcpy6 */
struct gpusonde_cupti_memcpy {
  uint32_t kind;
  uint8_t copy_kind;   /* CUpti_ActivityMemcpyKind */
  uint8_t source_kind; /* CUpti_ActivityMemoryKind */
  uint8_t target_kind;
  uint8_t flags; /* GPUSONDE_CUPTI_FLAG_ASYNC */
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
  uint32_t runtime_correlation_id;
  uint32_t padding;
  void* reserved0;
  uint64_t graph_node_id; /* since Memcpy4 (CUDA 11.1) */
  uint32_t graph_id;
  uint32_t channel_id;
  uint32_t channel_type;
  uint8_t is_device_launched; /* since Memcpy6 (CUDA 13.0); padding before */
  uint8_t padding2[3];
  uint64_t copy_count; /* since Memcpy6 */
};
#define GPUSONDE_CUPTI_MEMCPY5_BYTES 88 /* CUPTI 12.x: the struct up to copy_count */

/* CUpti_ActivityMemcpyPtoP4: kind MEMCPY2 */
struct gpusonde_cupti_memcpy_peer {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t target_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t source_device_id;
  uint32_t source_context_id;
  uint32_t target_device_id;
  uint32_t target_context_id;
  uint32_t correlation_id;
  void* reserved0;
  uint64_t graph_node_id;
  uint32_t graph_id;
  uint32_t channel_id;
  uint32_t channel_type;
  uint32_t padding;
};

/* CUpti_ActivityMemset4 */
struct gpusonde_cupti_memset {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
  uint16_t flags;
  uint16_t memory_kind; /* CUpti_ActivityMemoryKind */
  uint32_t padding;
  void* reserved0;
  uint64_t graph_node_id;
  uint32_t graph_id;
  uint32_t channel_id;
  uint32_t channel_type;
  uint8_t is_device_launched; /* padding before CUDA 13.0 */
  uint8_t padding2[3];
};

/* CUpti_ActivitySynchronization2 */
struct gpusonde_cupti_synchronization {
  uint32_t kind;
  uint32_t type; /* CUpti_ActivitySynchronizationType */
  uint64_t start;
  uint64_t end;
  uint32_t correlation_id;
  uint32_t context_id;
  uint32_t stream_id;     /* GPUSONDE_CUPTI_INVALID_ID where it refers to no stream */
  uint32_t cuda_event_id; /* likewise */
  /* the above: all of CUPTI 12 and 13 */
  uint64_t cuda_event_sync_id;
  uint32_t return_value;
  uint32_t padding;
};

/* CUpti_ActivityOverhead3 */
struct gpusonde_cupti_overhead {
  uint32_t kind;
  uint32_t overhead_kind; /* CUpti_ActivityOverheadKind */
  uint32_t object_kind;
  uint32_t object_id[3];
  uint64_t start;
  uint64_t end;
  /* the above: all of CUPTI 12 and 13 */
  uint32_t correlation_id;
  uint32_t reserved0;
  void* overhead_data;
};

/* CUpti_ActivityGraphTrace2 */
struct gpusonde_cupti_graph_trace {
  uint32_t kind;
  uint32_t correlation_id;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t graph_id;
  uint32_t context_id;
  uint32_t stream_id;
  void* reserved;
  uint32_t end_device_id; /* since GraphTrace2 (CUDA 12.4) */
  uint32_t end_context_id;
};

/* CUpti_ActivityMemcpyKind */
enum {
  GPUSONDE_CUPTI_MEMCPY_UNKNOWN = 0,
  GPUSONDE_CUPTI_MEMCPY_HTOD = 1,
  GPUSONDE_CUPTI_MEMCPY_DTOH = 2,
  GPUSONDE_CUPTI_MEMCPY_HTOA = 3, /* A: a CUDA array, on the device */
  GPUSONDE_CUPTI_MEMCPY_ATOH = 4,
  GPUSONDE_CUPTI_MEMCPY_ATOA = 5,
  GPUSONDE_CUPTI_MEMCPY_ATOD = 6,
  GPUSONDE_CUPTI_MEMCPY_DTOA = 7,
  GPUSONDE_CUPTI_MEMCPY_DTOD = 8,
  GPUSONDE_CUPTI_MEMCPY_HTOH = 9,
  GPUSONDE_CUPTI_MEMCPY_PTOP = 10
};

/* CUpti_ActivityMemoryKind */
enum {
  GPUSONDE_CUPTI_MEMORY_UNKNOWN = 0,
  GPUSONDE_CUPTI_MEMORY_PAGEABLE = 1,
  GPUSONDE_CUPTI_MEMORY_PINNED = 2,
  GPUSONDE_CUPTI_MEMORY_DEVICE = 3,
  GPUSONDE_CUPTI_MEMORY_ARRAY = 4,
  GPUSONDE_CUPTI_MEMORY_MANAGED = 5,
  GPUSONDE_CUPTI_MEMORY_DEVICE_STATIC = 6,
  GPUSONDE_CUPTI_MEMORY_MANAGED_STATIC = 7
};

/* CUpti_ActivitySynchronizationType */
enum {
  GPUSONDE_CUPTI_SYNC_UNKNOWN = 0,
  GPUSONDE_CUPTI_SYNC_EVENT = 1,
  GPUSONDE_CUPTI_SYNC_STREAM_WAIT_EVENT = 2,
  GPUSONDE_CUPTI_SYNC_STREAM = 3,
  GPUSONDE_CUPTI_SYNC_CONTEXT = 4
};

/* CUpti_ActivityOverheadKind */
enum {
  GPUSONDE_CUPTI_OVERHEAD_DRIVER_COMPILER = 1,
  GPUSONDE_CUPTI_OVERHEAD_BUFFER_FLUSH = 1 << 16,
  GPUSONDE_CUPTI_OVERHEAD_INSTRUMENTATION = 2 << 16,
  GPUSONDE_CUPTI_OVERHEAD_RESOURCE = 3 << 16
};

#define GPUSONDE_CUPTI_FLAG_ASYNC (1u << 0)        /* CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, _MEMSET_ASYNC */
#define GPUSONDE_CUPTI_FLAG_FLUSH_FORCED (1u << 0) /* of cuptiActivityFlushAll */
#define GPUSONDE_CUPTI_INVALID_ID 0xffffffffu      /* CUPTI_INVALID_STREAM_ID, _CONTEXT_ID */

/* CUpti_ActivityAttribute; values are size_t, but for ZEROED_OUT and PER_THREAD (uint8_t). */
enum {
  GPUSONDE_CUPTI_ATTR_DEVICE_BUFFER_SIZE = 0,
  GPUSONDE_CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT = 2,
  GPUSONDE_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER = 5,
  GPUSONDE_CUPTI_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE = 6,
  GPUSONDE_CUPTI_ATTR_PER_THREAD_ACTIVITY_BUFFER = 9
};

/* --- functions --- */

/* CUpti_CallbackFunc. Called on the thread that makes the CUDA call. */
typedef void gpusonde_cupti_callback(void* user, uint32_t domain, uint32_t callback_id, const void* data);
/* CUpti_BuffersCallbackRequestFunc: an empty buffer, aligned to 8 bytes; *max_records 0 means as many as fit.
 * A null buffer makes CUPTI drop the record. */
typedef void gpusonde_cupti_buffer_requested(uint8_t** buffer, size_t* bytes, size_t* max_records);
/* CUpti_BuffersCallbackCompleteFunc: returns the buffer. Context and stream are unused since CUDA 6. */
typedef void gpusonde_cupti_buffer_completed(void* context, uint32_t stream_id, uint8_t* buffer, size_t bytes,
                                             size_t valid_bytes);
/* CUpti_TimestampCallbackFunc */
typedef uint64_t gpusonde_cupti_timestamp(void);
/* CUpti_SubscriberHandle */
typedef struct gpusonde_cupti_subscriber* gpusonde_cupti_subscriber_handle;

/* The function types. dlsym finds each function by the name in the comment; simgpu defines the functions. */

/* cuptiGetVersion */
typedef gpusonde_cupti_result gpusonde_cupti_get_version_fn(uint32_t* version);
/* cuptiGetResultString */
typedef gpusonde_cupti_result gpusonde_cupti_get_result_string_fn(gpusonde_cupti_result result,
                                                                  const char** text);
/* cuptiSubscribe */
typedef gpusonde_cupti_result gpusonde_cupti_subscribe_fn(gpusonde_cupti_subscriber_handle* subscriber,
                                                          gpusonde_cupti_callback* callback, void* user);
/* cuptiSubscribe_v2; `params` may be null */
typedef gpusonde_cupti_result gpusonde_cupti_subscribe_v2_fn(gpusonde_cupti_subscriber_handle* subscriber,
                                                             gpusonde_cupti_callback* callback, void* user,
                                                             struct gpusonde_cupti_subscriber_params* params);
/* cuptiUnsubscribe */
typedef gpusonde_cupti_result gpusonde_cupti_unsubscribe_fn(gpusonde_cupti_subscriber_handle subscriber);
/* cuptiEnableCallback; calls for one subscriber must not overlap */
typedef gpusonde_cupti_result gpusonde_cupti_enable_callback_fn(uint32_t enable,
                                                                gpusonde_cupti_subscriber_handle subscriber,
                                                                uint32_t domain, uint32_t callback_id);
/* cuptiEnableDomain */
typedef gpusonde_cupti_result gpusonde_cupti_enable_domain_fn(uint32_t enable,
                                                              gpusonde_cupti_subscriber_handle subscriber,
                                                              uint32_t domain);
/* cuptiActivityEnable, cuptiActivityDisable */
typedef gpusonde_cupti_result gpusonde_cupti_activity_kind_fn(uint32_t kind);
/* cuptiActivityRegisterCallbacks: process-wide, the last caller wins */
typedef gpusonde_cupti_result gpusonde_cupti_activity_register_callbacks_fn(
    gpusonde_cupti_buffer_requested* requested, gpusonde_cupti_buffer_completed* completed);
/* cuptiActivityRegisterTimestampCallback: before any kind is enabled */
typedef gpusonde_cupti_result gpusonde_cupti_activity_register_timestamp_callback_fn(
    gpusonde_cupti_timestamp* timestamp);
/* cuptiActivityFlushAll: 0 for buffers whose records are complete, FLAG_FLUSH_FORCED for all */
typedef gpusonde_cupti_result gpusonde_cupti_activity_flush_all_fn(uint32_t flag);
/* cuptiActivityFlushPeriod: CUPTI's worker delivers full buffers with this period in ms; 0 disables it */
typedef gpusonde_cupti_result gpusonde_cupti_activity_flush_period_fn(uint32_t period_ms);
/* cuptiActivityGetNextRecord: *record null for the first; SUCCESS, or MAX_LIMIT_REACHED at the end */
typedef gpusonde_cupti_result gpusonde_cupti_activity_get_next_record_fn(uint8_t* buffer, size_t valid_bytes,
                                                                         void** record);
/* cuptiActivityGetNumDroppedRecords: since the last call; context null and stream 0 for the global queue */
typedef gpusonde_cupti_result gpusonde_cupti_activity_get_num_dropped_records_fn(void* context,
                                                                                 uint32_t stream_id,
                                                                                 size_t* dropped);
/* cuptiActivitySetAttribute, cuptiActivityGetAttribute */
typedef gpusonde_cupti_result gpusonde_cupti_activity_attribute_fn(uint32_t attribute, size_t* value_bytes,
                                                                   void* value);
/* cuptiGetTimestamp */
typedef gpusonde_cupti_result gpusonde_cupti_get_timestamp_fn(uint64_t* timestamp);
/* cuptiGetDeviceId */
typedef gpusonde_cupti_result gpusonde_cupti_get_device_id_fn(void* context, uint32_t* device_id);
/* cuptiGetContextId */
typedef gpusonde_cupti_result gpusonde_cupti_get_context_id_fn(void* context, uint32_t* context_id);
/* cuptiGetGraphId (of a CUgraph), cuptiGetGraphExecId (of a CUgraphExec, since CUDA 12.0) */
typedef gpusonde_cupti_result gpusonde_cupti_get_graph_id_fn(void* graph, uint32_t* id);
/* cuptiGetGraphNodeId (of a CUgraphNode) */
typedef gpusonde_cupti_result gpusonde_cupti_get_graph_node_id_fn(void* node, uint64_t* id);
/* cuptiFinalize: detaches CUPTI from the process. Must not be called while records are in flight: only from
 * an API exit callback or when no CUDA call runs. */
typedef gpusonde_cupti_result gpusonde_cupti_finalize_fn(void);

#ifdef __cplusplus
}
#endif
