/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of host_signals.bpf.c that says whose system call ends a wait: that of the thread that wakes the
 * waiting one, unless an interrupt does so on it. */
#pragma once

/* Looking for the name of who ends a wait takes half a microsecond: only for waits that matter. */
#define SHORTEST_NAMED_WAIT_NS 1000000

/* Whether the task is in a system call that may send a packet, on x86-64. The sending thread itself receives
 * a packet within one machine; other packets are received on an arbitrary thread that the interrupt hit. */
static __always_inline bool sends(struct task_struct *task) {
  switch (system_call_of(task)) {
    case 1:   /* write */
    case 20:  /* writev */
    case 40:  /* sendfile */
    case 44:  /* sendto */
    case 46:  /* sendmsg */
    case 307: /* sendmmsg */
    case 426: /* io_uring_enter */
      return true;
    default:
      return false;
  }
}

/* Whether the task is in a system call that makes room in a socket's buffer: it sends a packet which says so,
 * and ends the wait of who could not send. */
static __always_inline bool receives(struct task_struct *task) {
  switch (system_call_of(task)) {
    case 0:   /* read */
    case 19:  /* readv */
    case 45:  /* recvfrom */
    case 47:  /* recvmsg */
    case 299: /* recvmmsg */
      return true;
    default:
      return false;
  }
}

#define MODE_TYPE 0170000 /* include/uapi/linux/stat.h: S_IFMT */
#define MODE_SOCKET 0140000
#define FAMILY_IPV4 2
#define FAMILY_IPV6 10

/* The socket that the task's system call, one of the above, is for; NULL if that is no socket. */
static __always_inline const struct sock *socket_of(struct task_struct *task) {
  const struct pt_regs___kernel *registers = (void *)bpf_task_pt_regs(task);
  const __u64 number = registers->di;
  const struct fdtable *table = BPF_CORE_READ(task, files, fdt);
  if (!table || number >= BPF_CORE_READ(table, max_fds)) return NULL;
  struct file *file = NULL;
  if (bpf_probe_read_kernel(&file, sizeof file, BPF_CORE_READ(table, fd) + number) || !file) return NULL;
  if ((BPF_CORE_READ(file, f_inode, i_mode) & MODE_TYPE) != MODE_SOCKET) return NULL;
  const struct socket *socket = BPF_CORE_READ(file, private_data);
  return BPF_CORE_READ(socket, sk);
}

/* Whether that socket is a connection of the machine with itself. An interrupt may deliver other packets on a
 * thread that sends to another machine, and any on one that receives from there. */
static __always_inline bool is_local(struct task_struct *task) {
  const struct sock *socket = socket_of(task);
  if (!socket) return false;
  const unsigned short family = BPF_CORE_READ(socket, __sk_common.skc_family);
  if (family == FAMILY_IPV4) {
    const __u32 to = BPF_CORE_READ(socket, __sk_common.skc_daddr);
    return to && to == BPF_CORE_READ(socket, __sk_common.skc_rcv_saddr);
  }
  if (family != FAMILY_IPV6) return false;
  __u64 to[2] = {}, from[2] = {};
  bpf_core_read(to, sizeof to, &socket->__sk_common.skc_v6_daddr);
  bpf_core_read(from, sizeof from, &socket->__sk_common.skc_v6_rcv_saddr);
  return (to[0] || to[1]) && to[0] == from[0] && to[1] == from[1];
}

/* The pid of the process that wakes a thread in a system call of its own. A process that exits wakes who
 * waits for it when it has neither memory nor an entry in `threads` any more. */
static __always_inline __u32 name_other_waker(void) {
  struct task_struct *task = bpf_get_current_task_btf();
  if (!(task->flags & PF_EXITING) && (!task->mm || system_call_of(task) < 0)) return 0;
  return name_current();
}
