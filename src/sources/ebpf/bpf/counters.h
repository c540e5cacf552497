/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program's drop counters, PROGRAM_COUNTERS of them (define it before), read by
 * sources/ebpf/program_counters.h. Include it once in a program. */
#pragma once

#include "sources/ebpf/bpf/kernel.h"

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, PROGRAM_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} counters SEC(".maps");

static __always_inline void count(__u32 counter) {
  __u64 *value = bpf_map_lookup_elem(&counters, &counter);
  if (value) __sync_fetch_and_add(value, 1); /* programs may interrupt each other on a CPU */
}
