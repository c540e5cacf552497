// SPDX-License-Identifier: Apache-2.0
// A library that uses CUPTI as PyTorch's profiler does: linked with it, and a subscriber once it is called.
#include "wire/nvidia/cupti.h"

extern "C" gpusonde_cupti_result cuptiSubscribe(gpusonde_cupti_subscriber_handle* subscriber,
                                                gpusonde_cupti_callback* callback, void* user);

// Where its calls go.
extern "C" __attribute__((visibility("default"))) const void* TargetOfRival() {
  return reinterpret_cast<const void*>(&cuptiSubscribe);
}

extern "C" __attribute__((visibility("default"))) int SubscribeAsRival() {
  gpusonde_cupti_subscriber_handle subscriber = nullptr;
  return static_cast<int>(
      cuptiSubscribe(&subscriber, [](void*, uint32_t, uint32_t, const void*) {}, nullptr));
}
