// SPDX-License-Identifier: Apache-2.0
// Functions that the loader takes long to bind: it asks their resolvers while it relocates a library that
// takes their addresses, for longer than a tick of our thread (250 ms).
#include <time.h>

namespace {

int Function() { return 1; }

}  // namespace

extern "C" {

// The sanitizers' runtimes may not be relocated yet: nothing but the C library.
static int (*Resolve())() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 600'000'000};
  nanosleep(&pause, nullptr);
  return Function;
}

__attribute__((visibility("default"), ifunc("Resolve"))) int ResolvedSlowlyFirst();
__attribute__((visibility("default"), ifunc("Resolve"))) int ResolvedSlowlyLast();
}
