// SPDX-License-Identifier: Apache-2.0
// Drops one in ONE_IN arriving packets of a network device at random: a lossy link rather than a full one. tc
// attaches it; faults.py compiles it with -DONE_IN=N. It needs no kernel headers: the numbers are those of
// linux/bpf.h and linux/pkt_cls.h, which never change.

static unsigned int (*const random_number)(void) = (void*)7;  // BPF_FUNC_get_prandom_u32
enum { kPass = 0, kLose = 2 };                                // TC_ACT_OK, TC_ACT_SHOT

__attribute__((section("classifier"), used)) int lose(void* packet) {
  (void)packet;
  return random_number() % ONE_IN == 0 ? kLose : kPass;
}

char licence[] __attribute__((section("license"), used)) = "Apache-2.0";
