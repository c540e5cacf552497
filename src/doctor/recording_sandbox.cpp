// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/sandbox.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {

Finding ProbeRecordingSandbox(const Settings& /*settings*/) {
  if (!HasSeccomp())
    return Fails("the kernel has no seccomp filters: the process that reads recordings could start programs",
                 "don't open recordings from people you don't trust, or build the kernel with "
                 "CONFIG_SECCOMP_FILTER");
  const int version = LandlockVersion();
  if (version == 0)
    return Fails(
        "the kernel has no Landlock, or it is not enabled: the process that reads recordings could open "
        "your other files",
        "don't open recordings from people you don't trust, or boot Linux 5.13 or later with "
        "lsm=landlock,...");
  return Works(fmt::format("recordings are read under seccomp and Landlock {}", version));
}

}  // namespace gpusonde::doctor
