// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"

namespace gpusonde::model {

// Signal::bucket_ns of what the kernel programs measure (GPUSONDE_SIGNAL_BUCKET_NS).
inline constexpr int64_t kSignalBucketNs = 10 * kNanosPerMilli;

}  // namespace gpusonde::model
