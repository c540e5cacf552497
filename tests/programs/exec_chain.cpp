// SPDX-License-Identifier: Apache-2.0
// exec_chain [LINKS]: uses 50 ms of CPU time, then executes itself, LINKS times (default 3): one pid,
// several address spaces.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "burn.h"

int main(int argc, char** argv) {
  const long links = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 3;
  Burn(50'000'000);
  if (links <= 0) return 0;
  ::execl("/proc/self/exe", argv[0], std::to_string(links - 1).c_str(), nullptr);
  std::perror("exec_chain: exec");
  return 1;
}
