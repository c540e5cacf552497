/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI of NCCL's profiler plugins, versions 3 to 6, declared by us.
 *
 * NCCL opens the library named in NCCL_PROFILER_PLUGIN, looks for the symbols ncclProfiler_vN, the newest
 * that it knows first, and calls the functions of the first one found. It calls `init` for each communicator
 * of the process; `start` and `stop` of collectives on the thread that enqueues them, and those of what
 * happens later (proxies, kernels) on its own threads. The handle that `start` returns stands for the event
 * until `stop`, and as the parent of later events also afterwards. Errors are ignored, except that of `init`,
 * after which NCCL goes on without the plugin. NCCL reads the mask of wanted events, whose address `init`
 * gets, at each call of the program.
 *
 * Source: NCCL's public headers (github.com/NVIDIA/nccl, src/include/plugin/profiler/profiler_v3.h to _v6.h
 * and nccl_profiler.h, plugins/profiler/README.md), NCCL 2.24 (v3), 2.26 (v4), 2.28 (v5), 2.29 (v6). Layouts
 * are those of x86-64. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Kinds of events, bits of the mask. Versions 3 and 4 have those up to NET_PLUGIN, 5 those up to
 * KERNEL_LAUNCH. */
enum {
  GPUSONDE_NCCL_GROUP = 1 << 0,
  GPUSONDE_NCCL_COLL = 1 << 1,
  GPUSONDE_NCCL_P2P = 1 << 2,
  GPUSONDE_NCCL_PROXY_OP = 1 << 3,
  GPUSONDE_NCCL_PROXY_STEP = 1 << 4,
  GPUSONDE_NCCL_PROXY_CTRL = 1 << 5,
  GPUSONDE_NCCL_KERNEL_CH = 1 << 6, /* the kernel of an operation works on one of its channels */
  GPUSONDE_NCCL_NET_PLUGIN = 1 << 7,
  GPUSONDE_NCCL_GROUP_API = 1 << 8,
  GPUSONDE_NCCL_COLL_API = 1 << 9,
  GPUSONDE_NCCL_P2P_API = 1 << 10,
  GPUSONDE_NCCL_KERNEL_LAUNCH = 1 << 11,
  GPUSONDE_NCCL_CE_COLL = 1 << 12, /* by copy engines */
  GPUSONDE_NCCL_CE_SYNC = 1 << 13,
  GPUSONDE_NCCL_CE_BATCH = 1 << 14
};

/* States that events change to (ncclProfilerEventState_t), as far as we look at them. */
enum {
  GPUSONDE_NCCL_STATE_PROXY_OP_LAST = 7, /* 0 to 7: of proxy operations, until version 3 */
  GPUSONDE_NCCL_STATE_PROXY_STEP_FIRST = 8,
  GPUSONDE_NCCL_STATE_PROXY_STEP_LAST = 12,
  GPUSONDE_NCCL_STATE_PROXY_CTRL_FIRST = 13,
  GPUSONDE_NCCL_STATE_PROXY_CTRL_LAST = 18,
  GPUSONDE_NCCL_STATE_KERNEL_CH_STOP = 22, /* since version 4; its argument is the GPU's time */
  GPUSONDE_NCCL_STATE_GROUP_API_LAST = 24, /* 23 and 24: since version 5 */
  GPUSONDE_NCCL_STATE_CE_LAST = 30         /* 25 to 30: since version 6 */
};

typedef int gpusonde_nccl_result; /* ncclResult_t */
enum { GPUSONDE_NCCL_SUCCESS = 0, GPUSONDE_NCCL_INTERNAL_ERROR = 3 };

/* ncclDebugLogger_t: level, subsystems, function, line, format. */
typedef void (*gpusonde_nccl_log)(int, unsigned long, const char*, int, const char*, ...);

/* The parts of event descriptors that several versions have. */
struct gpusonde_nccl_proxy_op {
  int32_t pid; /* of the process that the operation belongs to: a parent of another process is no handle of
                  ours */
  uint8_t channel;
  int32_t peer;
  int32_t steps;
  int32_t chunk_bytes;
  int32_t is_send;
};
struct gpusonde_nccl_net_plugin {
  int64_t id;
  void* data;
};
struct gpusonde_nccl_kernel_ch {
  uint8_t channel;
  uint64_t timer; /* since version 4: the GPU's globaltimer, ns */
};
struct gpusonde_nccl_coll {
  uint64_t sequence; /* of this operation in this communicator */
  const char* operation;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
  void* group; /* since version 5: what `parent` was until version 4 */
};
struct gpusonde_nccl_p2p {
  const char* operation;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
  uint8_t channels;
  void* group; /* since version 5 */
};

/* Version 3. */
struct gpusonde_nccl_coll_v3 {
  const char* communicator_name;
  uint64_t communicator;
  uint64_t sequence;
  const char* operation;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int32_t root;
  const char* datatype;
  uint8_t max_channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct gpusonde_nccl_p2p_v3 {
  const char* communicator_name;
  uint64_t communicator;
  const char* operation;
  void* buffer;
  const char* datatype;
  size_t count;
  int32_t peer;
};
struct gpusonde_nccl_event_v3 {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    struct gpusonde_nccl_coll_v3 coll;
    struct gpusonde_nccl_p2p_v3 p2p;
    struct gpusonde_nccl_proxy_op proxy_op;
    int32_t proxy_step;
    uint8_t kernel_channel;
    struct gpusonde_nccl_net_plugin net_plugin;
  };
};
union gpusonde_nccl_state_v3 {
  struct {
    size_t bytes;
    int32_t steps;
  } proxy_op;
  int32_t appended_proxy_ops;
};

/* Version 4: `coll` and `p2p` end before `group`. */
struct gpusonde_nccl_event_v4 {
  uint8_t type;
  void* parent;
  int32_t rank;
  union {
    uint64_t words[10];
    struct gpusonde_nccl_proxy_op proxy_op;
    int32_t proxy_step;
    struct gpusonde_nccl_kernel_ch kernel_ch;
    struct gpusonde_nccl_net_plugin net_plugin;
  };
};
union gpusonde_nccl_state_v4 { /* of versions 4, 5 and 6 */
  size_t bytes;
  int32_t appended_proxy_ops;
  void* data;
  uint64_t timer;
};

/* Versions 5 and 6. Of the descriptors that only they have, we need no field. */
struct gpusonde_nccl_event_v5 {
  uint64_t type;
  void* parent;
  int32_t rank;
  union {
    struct gpusonde_nccl_coll coll;
    struct gpusonde_nccl_p2p p2p;
    struct gpusonde_nccl_proxy_op proxy_op;
    int32_t proxy_step;
    struct gpusonde_nccl_kernel_ch kernel_ch;
    struct gpusonde_nccl_net_plugin net_plugin;
    uint64_t words[11];
  };
};

struct gpusonde_nccl_profiler_v3 {
  const char* name;
  gpusonde_nccl_result (*init)(void** context, int* mask);
  gpusonde_nccl_result (*start)(void* context, void** handle, struct gpusonde_nccl_event_v3* event);
  gpusonde_nccl_result (*stop)(void* handle);
  gpusonde_nccl_result (*record_state)(void* handle, int state, union gpusonde_nccl_state_v3* arguments);
  gpusonde_nccl_result (*finalize)(void* context);
};
struct gpusonde_nccl_profiler_v4 {
  const char* name;
  gpusonde_nccl_result (*init)(void** context, int* mask, const char* communicator_name,
                               uint64_t communicator, int nodes, int ranks, int rank, gpusonde_nccl_log log);
  gpusonde_nccl_result (*start)(void* context, void** handle, struct gpusonde_nccl_event_v4* event);
  gpusonde_nccl_result (*stop)(void* handle);
  gpusonde_nccl_result (*record_state)(void* handle, int state, union gpusonde_nccl_state_v4* arguments);
  gpusonde_nccl_result (*finalize)(void* context);
};
struct gpusonde_nccl_profiler_v5 { /* and 6 */
  const char* name;
  gpusonde_nccl_result (*init)(void** context, uint64_t communicator, int* mask,
                               const char* communicator_name, int nodes, int ranks, int rank,
                               gpusonde_nccl_log log);
  gpusonde_nccl_result (*start)(void* context, void** handle, struct gpusonde_nccl_event_v5* event);
  gpusonde_nccl_result (*stop)(void* handle);
  gpusonde_nccl_result (*record_state)(void* handle, int state, union gpusonde_nccl_state_v4* arguments);
  gpusonde_nccl_result (*finalize)(void* context);
};

#ifdef __cplusplus
/* Derived from the public declarations and the x86-64 psABI. */
static_assert(offsetof(gpusonde_nccl_event_v3, coll) == 24 && sizeof(gpusonde_nccl_event_v3) == 120);
static_assert(offsetof(gpusonde_nccl_coll_v3, root) == 56 && offsetof(gpusonde_nccl_coll_v3, warps) == 73 &&
              offsetof(gpusonde_nccl_coll_v3, protocol) == 88);
static_assert(offsetof(gpusonde_nccl_p2p_v3, peer) == 48 && sizeof(gpusonde_nccl_p2p_v3) == 56);
static_assert(sizeof(gpusonde_nccl_state_v3) == 16 && sizeof(gpusonde_nccl_state_v4) == 8);
static_assert(offsetof(gpusonde_nccl_event_v4, words) == 24 && sizeof(gpusonde_nccl_event_v4) == 104);
static_assert(offsetof(gpusonde_nccl_event_v5, coll) == 24 && sizeof(gpusonde_nccl_event_v5) == 112);
static_assert(offsetof(gpusonde_nccl_coll, root) == 40 && offsetof(gpusonde_nccl_coll, warps) == 57 &&
              offsetof(gpusonde_nccl_coll, protocol) == 72 && offsetof(gpusonde_nccl_coll, group) == 80);
static_assert(offsetof(gpusonde_nccl_p2p, channels) == 36 && offsetof(gpusonde_nccl_p2p, group) == 40);
static_assert(sizeof(gpusonde_nccl_proxy_op) == 24 && offsetof(gpusonde_nccl_kernel_ch, timer) == 8);
static_assert(sizeof(gpusonde_nccl_profiler_v3) == 48 && sizeof(gpusonde_nccl_profiler_v5) == 48);
#endif
