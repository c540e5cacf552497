// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <span>
#include <utility>

#include "base/fd.h"

namespace gpusonde {

// A memory file with these bytes.
inline Fd MemoryFile(std::span<const uint8_t> bytes) {
  Fd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  if (fd.valid() && !WriteAll(fd.get(), std::as_bytes(bytes)).has_value()) fd.Close();
  return fd;
}

}  // namespace gpusonde
