// SPDX-License-Identifier: Apache-2.0
// Forks 1,000 children, one after the other, that use a millisecond of CPU time each. Prints their total CPU
// time: {"children":1000,"cpu_ns":…}.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "burn.h"

namespace {

constexpr int kChildren = 1'000;
constexpr int64_t kBurnNs = 1'000'000;

int64_t Nanos(const timeval& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_usec * 1'000; }

}  // namespace

int main() {
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      Burn(kBurnNs);
      ::_exit(0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) {
      std::perror("forker: child");
      return 1;
    }
  }
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  fmt::print(R"({{"children":{},"cpu_ns":{}}})"
             "\n",
             kChildren, Nanos(used.ru_utime) + Nanos(used.ru_stime));
}
