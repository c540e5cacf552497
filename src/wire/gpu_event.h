/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) OR Apache-2.0 */
/* The protocol by which libgpusonde-inject.so (src/inject) reports the GPU work of its process to
 * sources/cupti. The same bytes are sent through USDT probes, where sources/ebpf/bpf/gpu_events.bpf.c copies
 * them, and through an inherited socket. Plain C for all three.
 *
 * A message is a batch: a header followed by records. Each record begins with its type and size; sizes are
 * multiples of 8. Fields are only ever added at the end of a record: a reader skips types that it doesn't
 * know, and ignores the bytes of a record beyond the fields that it knows. Batches come from untrusted
 * processes: a reader must check every field.
 *
 * Times are ns of CLOCK_MONOTONIC; 0 means that CUPTI has no time. Counts are totals since the session began,
 * so that the next message makes up for a lost one. */
#pragma once

#include <linux/types.h>

#define GPUSONDE_GPU_MAGIC 0x31757067u /* "gpu1" */
#define GPUSONDE_GPU_VERSION 2
#define GPUSONDE_GPU_BATCH_BYTES 8192 /* the largest batch, header included */
#define GPUSONDE_GPU_NAME_BYTES 4096  /* the longest kernel name; the rest is cut off */
#define GPUSONDE_GPU_TEXT_BYTES 256   /* the longest text of a range, and of its domain */

#define GPUSONDE_GPU_NO_DEVICE 0xffffffffu
#define GPUSONDE_GPU_OTHER_NAME 0 /* the id of all names beyond what the library keeps */
#define GPUSONDE_GPU_CERTAIN 0x80000000u

struct gpusonde_gpu_batch {
  __u32 magic;
  __u16 version;
  __u16 channel;  /* gpusonde_gpu_channel: each counts its batches by itself */
  __u32 bytes;    /* all of it, this header too */
  __u32 session;  /* awake period, from 1; 0: sent while asleep */
  __u64 sequence; /* of this instance and channel, from 0 */
  __u64 instance; /* when the library began, ns of CLOCK_MONOTONIC: an exec brings a new one under the old pid
                   */
};

/* Shares of a process's time are sent in parts per million. */
#define GPUSONDE_GPU_PPM 1e6

/* The budgets that a consumer may give the library, in parts per million of the process's time: it attaches
 * to the probe gpusonde:budgetN, where N is the budget's place in this list. Of several consumers the lowest
 * budget counts. */
#define GPUSONDE_GPU_BUDGETS {500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10000, 15000, 20000, 30000, 50000}
#define GPUSONDE_GPU_BUDGET_COUNT 13

/* The kind of records in a batch, and the probe through which it is sent. */
enum gpusonde_gpu_channel {
  GPUSONDE_GPU_STATE, /* sessions, names, devices, totals, drops: low volume; define what records refer to */
  GPUSONDE_GPU_RECORDS, /* activity and ranges: high volume */
  GPUSONDE_GPU_LAUNCH, /* one launch or graph node, sent on the thread that makes it, so that its stack can be
                          taken */
  GPUSONDE_GPU_SNAPSHOT, /* earlier state, repeated for a consumer that attaches within a session; sent
                            through its probe only, while a consumer is attached to it */
  GPUSONDE_GPU_CHANNELS,
};

enum gpusonde_gpu_type {
  GPUSONDE_GPU_SESSION_BEGIN = 1,
  GPUSONDE_GPU_SESSION_END = 2,
  GPUSONDE_GPU_NAME = 3,
  GPUSONDE_GPU_DEVICE = 4,
  GPUSONDE_GPU_KERNEL = 5,
  GPUSONDE_GPU_MEMCPY = 6,
  GPUSONDE_GPU_MEMSET = 7,
  GPUSONDE_GPU_SYNC = 8,
  GPUSONDE_GPU_TOTAL = 9,
  GPUSONDE_GPU_DROPS = 10,
  GPUSONDE_GPU_CALL = 11,
  GPUSONDE_GPU_GRAPH_NODE = 12,
  GPUSONDE_GPU_RANGE = 13,
  GPUSONDE_GPU_FOREIGN = 14,
  GPUSONDE_GPU_SNAPSHOT_BEGIN = 15,
  GPUSONDE_GPU_SNAPSHOT_END = 16,
  GPUSONDE_GPU_COMMUNICATOR = 17,
  GPUSONDE_GPU_COLLECTIVE = 18,
  GPUSONDE_GPU_OVERHEAD = 19,
};

struct gpusonde_gpu_record {
  __u16 type;
  __u16 bytes; /* this header too; a multiple of 8 */
};

/* The library has subscribed to CUPTI. */
struct gpusonde_gpu_session_begin {
  struct gpusonde_gpu_record record;
  __u32 cupti_version; /* from cuptiGetVersion */
  __u64 begin_ns;
};

enum gpusonde_gpu_end {
  GPUSONDE_GPU_END_NO_CONSUMER = 1, /* the last consumer has detached */
  GPUSONDE_GPU_END_GOVERNOR,        /* the overhead budget is used up; another session follows */
  GPUSONDE_GPU_END_FOREIGN,         /* another user of CUPTI is in the process */
  GPUSONDE_GPU_END_EXIT,            /* the process ends */
  GPUSONDE_GPU_END_CUPTI,           /* CUPTI failed */
};

struct gpusonde_gpu_session_end {
  struct gpusonde_gpu_record record;
  __u32 reason; /* gpusonde_gpu_end */
  __u64 end_ns;
};

/* A kernel's name, sent before the session's first record that refers to it. */
struct gpusonde_gpu_name {
  struct gpusonde_gpu_record record;
  __u32 id;
  __u32 length; /* of the text, without padding */
  __u32 cut;    /* 1: the name is longer */
  /* the text, padded to 8 bytes */
};

/* A device, sent before the session's first record that refers to it. */
struct gpusonde_gpu_device {
  struct gpusonde_gpu_record record;
  __u32 ordinal; /* as the process counts devices */
  __u8 uuid[16]; /* all zero: not known */
  __u64 memory_bytes;
  __u32 sm_count;
  __u32 padding;
  char pci_bus[16]; /* zero-terminated, as the next */
  char name[96];
};

struct gpusonde_gpu_kernel {
  struct gpusonde_gpu_record record;
  __u32 correlation;
  __u64 start_ns;
  __u64 end_ns;
  __u32 name;
  __u32 device;
  __u32 context;
  __u32 stream;
  __u32 grid_x;
  __u32 grid_y;
  __u32 grid_z;
  __u16 block_x;
  __u16 block_y;
  __u16 block_z;
  __u16 registers;
  __u32 static_shared_bytes;
  __u32 dynamic_shared_bytes;
  __u32 graph;
  __u64 graph_node; /* 0 outside graphs */
};

struct gpusonde_gpu_memcpy {
  struct gpusonde_gpu_record record;
  __u32 correlation;
  __u64 start_ns;
  __u64 end_ns;
  __u64 bytes;
  __u32 device;
  __u32 context;
  __u32 stream;
  __u8 copy_kind;   /* CUpti_ActivityMemcpyKind (wire/nvidia/cupti.h) */
  __u8 source_kind; /* CUpti_ActivityMemoryKind */
  __u8 target_kind;
  __u8 asynchronous;
  __u64 graph_node;
};

struct gpusonde_gpu_memset {
  struct gpusonde_gpu_record record;
  __u32 correlation;
  __u64 start_ns;
  __u64 end_ns;
  __u64 bytes;
  __u32 device;
  __u32 context;
  __u32 stream;
  __u32 padding;
  __u64 graph_node;
};

struct gpusonde_gpu_sync {
  struct gpusonde_gpu_record record;
  __u32 correlation;
  __u64 start_ns;
  __u64 end_ns;
  __u32 device; /* GPUSONDE_GPU_NO_DEVICE until another record has shown the context's device */
  __u32 context;
  __u32 stream; /* GPUSONDE_GPU_NO_DEVICE where it refers to no stream */
  __u32 kind;   /* CUpti_ActivitySynchronizationType */
};

/* The sum of all activity of one type, device and key that CUPTI reported in this session. Exact even if
 * single records were dropped. */
struct gpusonde_gpu_total {
  struct gpusonde_gpu_record record;
  __u32 of; /* gpusonde_gpu_type: KERNEL, MEMCPY, MEMSET or SYNC */
  __u32 device;
  __u32 key; /* the kernel's name, the kind of copy, the kind of sync; 0 for sets */
  __u64 count;
  __u64 untimed; /* how many of these have no times and are not in total_ns */
  __u64 total_ns;
  __u64 bytes; /* copies and sets */
};

enum gpusonde_gpu_drop {
  GPUSONDE_GPU_DROP_CUPTI,   /* records that CUPTI dropped; one for a rest of a buffer that it can't read */
  GPUSONDE_GPU_DROP_BUFFERS, /* times CUPTI asked for a buffer and there was none */
  GPUSONDE_GPU_DROP_KIND,    /* records of a kind that was not enabled */
  GPUSONDE_GPU_DROP_NAMES,   /* kernels reported as GPUSONDE_GPU_OTHER_NAME because the name table was full */
  GPUSONDE_GPU_DROP_UNREADABLE, /* kernels whose name could no longer be read */
  GPUSONDE_GPU_DROP_TOTALS,     /* records missing in the totals, because the table was full */
  GPUSONDE_GPU_DROP_SEND,       /* batches dropped because the socket was full */
  GPUSONDE_GPU_DROP_RANGES,     /* ranges nested too deep, or too many open at once */
  GPUSONDE_GPU_DROP_REASONS,
};

/* Since the process began. */
struct gpusonde_gpu_drops {
  struct gpusonde_gpu_record record;
  __u32 padding;
  __u64 counts[GPUSONDE_GPU_DROP_REASONS];
};

/* A sampled call that submitted work to a device. The message has the stack if it could be taken. */
struct gpusonde_gpu_call {
  struct gpusonde_gpu_record record;
  __u32 correlation;
  __u64 start_ns;
  __u64 end_ns;
  __u32 tid;         /* in the process's own pid namespace */
  __u32 probability; /* of being sampled, in units of 2^-31 */
  __u32 domain;      /* of CUPTI: driver or runtime */
  __u32 callback_id; /* wire/nvidia/cupti_callbacks.h */
  __s32 result;
  __u32 padding;
};

/* A graph's node was created, or cloned when its graph was instantiated. The message has the stack of a
 * sampled creation. */
struct gpusonde_gpu_graph_node {
  struct gpusonde_gpu_record record;
  __u32 graph;
  __u64 node;
  __u64 original_node; /* 0: created, not cloned */
  __u64 created_ns;
  __u32 tid;
  __u32 probability; /* with which its stack is taken; cloned ones have none */
};

enum gpusonde_gpu_range_kind { GPUSONDE_GPU_RANGE_PUSH_POP = 1, GPUSONDE_GPU_RANGE_START_END = 2 };

struct gpusonde_gpu_range {
  struct gpusonde_gpu_record record;
  __u32 tid;
  __u64 start_ns;
  __u64 end_ns; /* 0: still open when the session ended */
  __u16 kind;   /* gpusonde_gpu_range_kind */
  __u16 domain_length;
  __u16 text_length;
  __u16 padding;
  /* the range's text, the domain's, padded */
};

/* A rank of this process in a NCCL communicator (wire/nvidia/nccl_profiler.h). Sent when a consumer has
 * attached, when the rank leaves, and every few seconds; in batches of session 0, like collectives. */
struct gpusonde_gpu_communicator {
  struct gpusonde_gpu_record record;
  __s32 rank;
  __u64 communicator; /* NCCL's hash, the same on all ranks */
  __s32 ranks;        /* 0: not known, like nodes */
  __s32 nodes;
  __u64 joined_ns;
  __u64 left_ns; /* 0: not yet */
  __u64 dropped; /* collectives that were not kept, so far */
  __u32 plugin_version;
  __u32 padding;
  char name[64]; /* zero-terminated */
};

/* A collective that has ended on this rank, or (end_ns 0) has not for a second. */
struct gpusonde_gpu_collective {
  struct gpusonde_gpu_record record;
  __u32 tid;
  __u64 communicator;
  __s32 rank;
  __s32 root;
  __u64 sequence; /* of this operation in this communicator */
  __u64 count;    /* of elements */
  __u64 called_ns;
  __u64 enqueued_ns; /* 0: not yet; also begin_ns and end_ns, which are those of its kernels as NCCL sees them
                      */
  __u64 begin_ns;
  __u64 end_ns;
  __u64 gpu_ns; /* of its kernel, by the GPU's clock; 0: not known */
  __u32 channels;
  __u32 padding;
  char operation[24]; /* zero-terminated, like the next */
  char datatype[16];
  char algorithm[16];
  char protocol[16];
};

/* Another tool is subscribed to CUPTI; the library tries again at until_ns. */
struct gpusonde_gpu_foreign {
  struct gpusonde_gpu_record record;
  __u32 padding;
  __u64 until_ns;
  char holder[64]; /* zero-terminated; empty when CUPTI doesn't say */
};

/* The profiling overhead of the process, sent after each awake window of a process that has a budget. Shares
 * are in parts per million of the process's time; those of `cost`, of the time of a step without profiling.
 */
struct gpusonde_gpu_overhead {
  struct gpusonde_gpu_record record;
  __u32 pairs; /* sleeps whose steps were compared with those beside them */
  __u64 time_ns;
  __u32 budget;
  __u32 spent;    /* lately, by the larger of the two costs */
  __u32 measured; /* cost while awake, as far as it can be measured inside the process */
  __u32 known;    /* 1: the three that follow are */
  __s32 cost;     /* cost while awake, by the time that steps take */
  __s32 cost_low; /* its 95 % interval */
  __s32 cost_high;
  __u32 padding;
};

/* A snapshot consists of this record, the session's devices and names, the end record, and then the totals
 * and drops so far. It is sent before the next records, and all later records can be decoded with it. */
struct gpusonde_gpu_snapshot_begin {
  struct gpusonde_gpu_record record;
  __u32 cupti_version;
  __u64 begin_ns; /* of the session */
  __u64 since_ns; /* activity that ended later has not been sent yet */
};

/* All names and devices to which the session's records have referred so far have been sent. */
struct gpusonde_gpu_snapshot_end {
  struct gpusonde_gpu_record record;
  __u32 padding;
};

/* --- added by the BPF program --- */

/* The largest batch on the launch channel. */
#define GPUSONDE_GPU_LAUNCH_BYTES 128

/* A message in the BPF ring buffer: this header and the batch; with a stack, the batch is padded to
 * GPUSONDE_GPU_LAUNCH_BYTES and a struct gpusonde_stack (wire/stack.h) follows, up to its last word used. */
struct gpusonde_gpu_message {
  __u64 time_ns;
  __u32 pid; /* thread group and thread, in the consumer's pid namespace */
  __u32 tid;
  __u32 batch_bytes;
  __u32 stack_bytes; /* 0: none was taken */
};

/* Indices of the kernel program's per-CPU counters. */
enum gpusonde_gpu_counter {
  GPUSONDE_GPU_RING_FULL,   /* messages lost: no room */
  GPUSONDE_GPU_OVER_BUDGET, /* messages beyond a process's bytes per second */
  GPUSONDE_GPU_UNREADABLE,  /* messages whose memory could not be read, or too long */
  GPUSONDE_GPU_BUSY,        /* messages lost: too many threads were preempted at a probe of one CPU */
  GPUSONDE_GPU_COUNTERS,
};
