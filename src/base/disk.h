// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace gpusonde {

// Checks that the file system of `folder` has at least `min_free_bytes` available. Errors: kOutOfSpace, with
// the available size; those of statvfs.
Status CheckDiskRoom(const std::string& folder, int64_t min_free_bytes);

}  // namespace gpusonde
