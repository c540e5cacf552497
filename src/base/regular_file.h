// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde {

// Opens a path that a stranger chose, for reading, without blocking. What it is gets decided on the open
// file: a FIFO or a device put in place between a stat and an open would block whoever opens it. Errors:
// kUnsupported for anything but a regular file; those of Open.
Result<Fd> OpenRegular(const std::string& path);

// Reads the first `limit` bytes, at most, of a file from OpenRegular. Errors: kIo.
Result<std::string> ReadRegular(const Fd& file, size_t limit);

}  // namespace gpusonde
