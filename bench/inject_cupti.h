// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/nvidia/cupti.h"

// A libcupti that does nothing, so that bench_inject measures the inject library's own cost.
extern "C" {
// The inject library's callback; null while it is asleep.
gpusonde_cupti_callback* BenchCallback();
void* BenchUser();
}
