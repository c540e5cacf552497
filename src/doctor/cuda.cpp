// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes.h"
#include "doctor/shared_library.h"

namespace gpusonde::doctor {

Finding ProbeCuda(const Settings&) {
  const FoundLibrary driver = FindLibrary({"libcuda.so.1"}, "cuInit");
  if (driver.path.empty())
    return Fails("NVIDIA's driver library does not load: " + driver.error,
                 "on a machine with an NVIDIA GPU install its driver; in a container start it with the GPU");
  return Works("NVIDIA's driver library is " + driver.path);
}

}  // namespace gpusonde::doctor
