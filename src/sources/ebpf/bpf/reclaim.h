/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of host_signals.bpf.c that knows when a thread reclaims memory for itself. */
#pragma once

static __always_inline void reclaim_begins(void) {
  const __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct thread *thread = find_entry(tid);
  if (thread) thread->reclaim_ns = bpf_ktime_get_ns();
}

static __always_inline void reclaim_ends(void) {
  const __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct thread *thread = find_entry(tid);
  if (!thread || !thread->reclaim_ns) return;
  spend(thread, GPUSONDE_SIGNAL_RECLAIM, 0, thread->reclaim_ns, bpf_ktime_get_ns());
  thread->reclaim_ns = 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(signal_reclaim_begin) {
  reclaim_begins();
  return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(signal_reclaim_end) {
  reclaim_ends();
  return 0;
}

/* Reclaim because a cgroup is at its limit. */
SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(signal_memcg_reclaim_begin) {
  reclaim_begins();
  return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(signal_memcg_reclaim_end) {
  reclaim_ends();
  return 0;
}
