// SPDX-License-Identifier: Apache-2.0
// A library that uses CUPTI as PyTorch's profiler does: linked with it, and a subscriber once it is called.
#include <string.h>
#include <unistd.h>

#include "wire/nvidia/cupti.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

#ifdef RIVAL_IS_SLOW
extern "C" int ResolvedSlowlyFirst();  // rival_relocation.cpp
extern "C" int ResolvedSlowlyLast();
EXPORTED int (*FirstOfRival())() { return ResolvedSlowlyFirst; }
#endif

#ifdef RIVAL_IS_LARGE
EXPORTED const char g_constants_of_rival[1 << 20];
const char g_constants_of_rival[1 << 20] = {1};
#endif

extern "C" gpusonde_cupti_result cuptiSubscribe(gpusonde_cupti_subscriber_handle* subscriber,
                                                gpusonde_cupti_callback* callback, void* user);

EXPORTED int SubscribeAsRival() {
  gpusonde_cupti_subscriber_handle subscriber = nullptr;
  const auto nothing = [](void*, uint32_t, uint32_t, const void*) {};
  return static_cast<int>(cuptiSubscribe(&subscriber, nothing, nullptr));
}

#ifdef RIVAL_IS_EARLY
// Two ticks later, when its calls are redirected.
__attribute__((constructor)) static void SubscribeAtOnce() {
  usleep(700'000);
  alarm(30);
  SubscribeAsRival();
  alarm(0);
}
#endif

#ifdef RIVAL_IS_SLOW
EXPORTED int (*LastOfRival())() { return ResolvedSlowlyLast; }
#endif

// Where its calls go: the entry that its linkage table jumps by (jmp *offset(%rip)). The address of the
// function is not taken, as the linker would then bind calls at once, too.
EXPORTED const void* TargetOfRival() {
  const unsigned char* jump = nullptr;
  asm("lea cuptiSubscribe@PLT(%%rip), %0" : "=r"(jump));
  while (jump[0] != 0xff || jump[1] != 0x25) ++jump;
  int offset = 0;
  memcpy(&offset, jump + 2, sizeof offset);
  const void* target = nullptr;
  memcpy(static_cast<void*>(&target), jump + 6 + offset, sizeof target);
  return target;
}
