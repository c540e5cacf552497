// SPDX-License-Identifier: Apache-2.0
#include "doctor/cuda_devices.h"
#include "doctor/probes.h"
#include "doctor/shared_library.h"

namespace gpusonde::doctor {

Finding ProbeCuda(const Settings&) {
  const FoundLibrary driver = FindLibrary({"libcuda.so.1"}, "cuInit");
  if (driver.path.empty())
    return Fails("NVIDIA's driver library does not load: " + driver.error,
                 "on a machine with an NVIDIA GPU install its driver; in a container start it with the GPU");
  const Result<std::string> started = StartCuda();
  if (!started.has_value())
    return Fails(
        "NVIDIA's driver library " + driver.path + " does not start: " + started.error().message,
        "no CUDA program can run as this user now; `nvidia-smi` and the kernel's log (dmesg) say more");
  return Works(*started);
}

}  // namespace gpusonde::doctor
