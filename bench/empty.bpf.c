// SPDX-License-Identifier: Apache-2.0
// Does nothing: the run time that the kernel counts of it is what the counting takes (bpf_stats.py).

__attribute__((section("classifier"), used)) int nothing(void* packet) {
  (void)packet;
  return 0;
}

char licence[] __attribute__((section("license"), used)) = "Apache-2.0";
