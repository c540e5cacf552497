/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The network part of host_signals.bpf.c: how long packets of each process wait in the queue of a network
 * device, and how many are retransmitted. Attached only while target processes wait for the network
 * (HostSignals::WatchNetwork). Packets that bypass the queue of an idle device cost nothing here. Source:
 * net/sched/sch_generic.c (dequeue_skb), net/core/dev.c (__dev_queue_xmit), net/ipv4/tcp_output.c
 * (__tcp_transmit_skb). */
#pragma once

/* The process that sends on a socket, by the socket's address: most packets of a stream leave in softirqs, on
 * an arbitrary thread. A socket may reuse the address of an earlier one; its first send then updates the
 * entry. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 2048);
  __type(key, __u64);
  __type(value, __u32);
} senders SEC(".maps");

/* End of the last reported queueing time of a process: its packets wait at the same time, which counts once.
 */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 256);
  __type(key, __u32);
  __type(value, __u64);
} queued_until SEC(".maps");

#define MAX_QUEUE_NS 10000000000ull /* a packet that seems to have waited longer uses another clock */
#define MAX_DEQUEUED 8              /* packets visited per dequeue */

/* The pid of the process that sends on a socket; 0: not known. */
static __always_inline __u32 sender_of(const struct sock *socket) {
  const __u64 key = (__u64)socket;
  const __u32 *pid = key ? bpf_map_lookup_elem(&senders, &key) : NULL;
  return pid ? *pid : 0;
}

static __always_inline void add_to_process(__u32 pid, __u32 signal, __u64 now, __u64 amount) {
  struct gpusonde_signal_key key = {
      .bucket = (__u32)(now / GPUSONDE_SIGNAL_BUCKET_NS), .pid = pid, .signal = signal};
  add(&key, amount);
}

static __always_inline void packet_leaves(struct sk_buff *packet, __u64 now) {
  const __u32 pid = sender_of(BPF_CORE_READ(packet, sk));
  if (!pid) return;
  add_to_process(pid, GPUSONDE_SIGNAL_NETWORK_BYTES, now, BPF_CORE_READ(packet, len));
  const __u64 ready = (__u64)BPF_CORE_READ(packet, tstamp);
  if (!ready || ready >= now || now - ready > MAX_QUEUE_NS || !wanted(pid)) return;
  const __u64 *until = bpf_map_lookup_elem(&queued_until, &pid);
  const __u64 from = until && *until > ready ? *until : ready;
  struct thread whole = {.pid = pid};
  spend(&whole, GPUSONDE_SIGNAL_NETWORK_QUEUED, 0, from, now);
  bpf_map_update_elem(&queued_until, &pid, &now, BPF_ANY);
}

/* A program sends: register its socket. */
SEC("tp_btf/net_dev_queue")
int BPF_PROG(signal_packet_sent, struct sk_buff *packet) {
  const struct cpu *cpu = here();
  struct task_struct *task = bpf_get_current_task_btf();
  if (!cpu || cpu->soft_ns || !task->mm) return 0;
  const __u64 socket = (__u64)BPF_CORE_READ(packet, sk);
  const __u32 pid = pids_of(task).pid;
  if (!socket || !pid) return 0;
  const __u32 *known = bpf_map_lookup_elem(&senders, &socket);
  if (known && *known == pid) return 0;
  bpf_map_update_elem(&senders, &socket, &pid, BPF_ANY);
  struct gpusonde_signal_process process;
  describe(task, &process);
  name_other(pid, &process);
  return 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(signal_packet_leaves, void *qdisc, void *queue, int packets, struct sk_buff *packet) {
  const __u64 now = bpf_ktime_get_ns();
  for (int i = 0; i < MAX_DEQUEUED && i < packets && packet; ++i) {
    packet_leaves(packet, now);
    packet = BPF_CORE_READ(packet, next);
  }
  return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(signal_retransmit, struct sock *socket) {
  const __u32 pid = sender_of(socket);
  if (pid) add_to_process(pid, GPUSONDE_SIGNAL_RETRANSMITS, bpf_ktime_get_ns(), 1);
  return 0;
}
