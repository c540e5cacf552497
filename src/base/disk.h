// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace gpusonde {

// Whether the file system of `folder` has at least `min_free_bytes` left for us. Errors: kOutOfSpace, which
// says how much there is; those of statvfs.
Status CheckDiskRoom(const std::string& folder, int64_t min_free_bytes);

}  // namespace gpusonde
