// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes.h"
#include "doctor/shared_library.h"

namespace gpusonde::doctor {

Finding ProbeNvml(const Settings&) {
  const FoundLibrary nvml = FindLibrary({"libnvidia-ml.so.1"}, "nvmlInit_v2");
  if (nvml.path.empty())
    return Fails("NVIDIA's management library does not load: " + nvml.error,
                 "it comes with NVIDIA's driver; in a container ask for the `utility` capability");
  return Works("NVIDIA's management library is " + nvml.path);
}

}  // namespace gpusonde::doctor
