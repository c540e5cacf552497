// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/error.h"

namespace gpusonde::sources {

// The error of a failed system call of a source; on a permission error, the message names the capabilities
// that are needed.
inline Error KernelError(int error_number, std::string_view what) {
  Error error = ErrnoError(error_number, what);
  if (error.code == ErrorCode::kPermissionDenied)
    error.message +=
        "; run as root, or give CAP_BPF and CAP_PERFMON (`gpusonde doctor` shows what is missing)";
  return error;
}

}  // namespace gpusonde::sources
