// SPDX-License-Identifier: Apache-2.0
// Uses 200 ms of CPU time, then dies of SIGSEGV, also under a sanitizer.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

#include "burn.h"

int main() {
  Burn(200'000'000);
  std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would exit instead
  void* forbidden = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (forbidden == MAP_FAILED) return 1;
  *static_cast<volatile char*>(forbidden) = 1;
  return 1;
}
