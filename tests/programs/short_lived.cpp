// SPDX-License-Identifier: Apache-2.0
// Exits at once, before a profiler can inspect it.
int main() { return 0; }
