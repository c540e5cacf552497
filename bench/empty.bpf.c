// SPDX-License-Identifier: Apache-2.0
// Does nothing: its measured run time is the cost of the measurement (bpf_stats.py).

__attribute__((section("classifier"), used)) int nothing(void* packet) {
  (void)packet;
  return 0;
}

char licence[] __attribute__((section("license"), used)) = "Apache-2.0";
