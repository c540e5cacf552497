// SPDX-License-Identifier: Apache-2.0
#include "doctor/advice.h"

#include <cerrno>

#include "base/error.h"
#include "base/fd.h"

namespace gpusonde::doctor {

Finding FailsWithErrno(int error_number, std::string_view what) {
  const bool refused = error_number == EPERM || error_number == EACCES;
  return Fails(ErrnoError(error_number, what).message,
               std::string(refused ? kNeedsPrivileges : kNeedsKernel));
}

std::string KernelSetting(std::string_view name) {
  Result<std::string> text = ReadFile("/proc/sys/" + std::string(name));
  if (!text.has_value()) return "unknown";
  while (text->ends_with('\n')) text->pop_back();
  return *text;
}

}  // namespace gpusonde::doctor
