// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde {

// Opens an untrusted path for reading, without blocking. Its type is checked on the open file, as a FIFO or
// device that is put in place between a stat and an open would block. Errors: kUnsupported for anything but a
// regular file; those of Open.
Result<Fd> OpenRegular(const std::string& path);

// Reads the first `limit` bytes, at most, of a file from OpenRegular. Errors: kIo.
Result<std::string> ReadRegular(const Fd& file, size_t limit);

}  // namespace gpusonde
