// SPDX-License-Identifier: Apache-2.0
#include "sources/perf/sideband.h"

#include "doctor/advice.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {

// Tries how `record` learns about processes and mappings, with rings of the same size.
Finding ProbeSideband(const Settings&) {
  const auto sideband = perf::Sideband::Create();
  if (!sideband.has_value()) {
    const bool refused = sideband.error().code == ErrorCode::kPermissionDenied;
    return Fails(sideband.error().message, std::string(refused ? kNeedsPrivileges : kNeedsKernel));
  }
  return Works("opened the kernel's events about processes and mappings on every CPU");
}

}  // namespace gpusonde::doctor
